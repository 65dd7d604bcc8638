/* gpu.c: what the GPUs of OpenCL and CUDA have in common: layouts of transfers, and functions of opened libraries. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NORTH, EAST, SOUTH, WEST };

size_t count_input_bytes(bool wave, size_t rows, size_t columns, size_t block)
{
  return (rows + columns) * (wave ? 2 : block) * sizeof(double);
}

void pack_input(char *to, bool wave, size_t rows, size_t columns, size_t block, const double *const in[4])
{
  size_t row_bytes = columns * sizeof(double), column_bytes = rows * sizeof(double);
  if (!wave) {
    memcpy(to, in[0], column_bytes * block);
    memcpy(to + column_bytes * block, in[1], row_bytes * block);
    return;
  }
  memcpy(to, in[NORTH], row_bytes);
  memcpy(to + row_bytes, in[SOUTH], row_bytes);
  memcpy(to + 2 * row_bytes, in[WEST], column_bytes);
  memcpy(to + 2 * row_bytes + column_bytes, in[EAST], column_bytes);
}

void unpack_edges(const char *from, size_t rows, size_t columns, double *const out[4])
{
  size_t row_bytes = columns * sizeof(double), column_bytes = rows * sizeof(double);
  memcpy(out[NORTH], from, row_bytes);
  memcpy(out[SOUTH], from + row_bytes, row_bytes);
  memcpy(out[WEST], from + 2 * row_bytes, column_bytes);
  memcpy(out[EAST], from + 2 * row_bytes + column_bytes, column_bytes);
}

int fail(char *problem, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, GPU_TEXT, format, arguments);
  va_end(arguments);
  for (char *c = problem; *c; c++)
    if (*c == '\n') *c = ' ';
  return -1;
}

/* The problem is that of the first name. */
void *open_library(const char *const names[], size_t count, char *problem)
{
  for (size_t k = 0; k < count; k++) {
    void *library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    if (library) return library;
    if (k == 0) fail(problem, "%s", dlerror());
  }
  return NULL;
}

/* ISO C has no cast for this. */
bool find_function(void *library, const char *name, void *function)
{
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

bool find_functions(void *library, const LibraryFunction functions[], size_t count, void *structure, char *problem)
{
  for (size_t k = 0; k < count; k++)
    if (!find_function(library, functions[k].name, (char *)structure + functions[k].offset)) {
      fail(problem, "found a library without the function %s", functions[k].name);
      return false;
    }
  return true;
}
