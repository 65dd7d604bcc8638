/* gpu.c: what the GPUs of OpenCL and CUDA have in common: tasks, layouts of transfers, and functions of opened libraries. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NORTH, EAST, SOUTH, WEST };

size_t count_input_bytes(const GpuTask *t) { return (t->rows + t->columns) * (t->wave ? 2 : t->block) * sizeof(double); }

static void pack_input(const GpuTask *t, char *to, const double *const in[4])
{
  size_t row_bytes = t->columns * sizeof(double), column_bytes = t->rows * sizeof(double);
  if (!t->wave) {
    memcpy(to, in[0], column_bytes * t->block);
    memcpy(to + column_bytes * t->block, in[1], row_bytes * t->block);
    return;
  }
  memcpy(to, in[NORTH], row_bytes);
  memcpy(to + row_bytes, in[SOUTH], row_bytes);
  memcpy(to + 2 * row_bytes, in[WEST], column_bytes);
  memcpy(to + 2 * row_bytes + column_bytes, in[EAST], column_bytes);
}

void unpack_edges(const GpuTask *t, const char *from, double *const out[4])
{
  size_t row_bytes = t->columns * sizeof(double), column_bytes = t->rows * sizeof(double);
  memcpy(out[NORTH], from, row_bytes);
  memcpy(out[SOUTH], from + row_bytes, row_bytes);
  memcpy(out[WEST], from + 2 * row_bytes, column_bytes);
  memcpy(out[EAST], from + 2 * row_bytes + column_bytes, column_bytes);
}

GpuTask *begin_gpu_task(Gpu *gpu, const char *kernel, size_t rows, size_t columns, size_t block, const double *initial)
{
  GpuTask *task = calloc(1, gpu->task_bytes);
  if (!task) return fail(gpu->problem, "the memory of the host is full"), NULL;
  *task = (GpuTask){.gpu = gpu, .wave = strcmp(kernel, "wave") == 0, .rows = rows, .columns = columns, .block = block};
  if (gpu->prepare(task, initial)) return task;
  gpu->free_task(task);
  return NULL;
}

int load_gpu_input(GpuTask *task, const double *const in[4])
{
  pack_input(task, task->input[task->loading], in);
  if (!task->gpu->copy_input(task, task->loading)) return -1;
  task->computing = task->loading;
  task->loading = (task->loading + 1) % GPU_SLOTS;
  return 0;
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

GpuCode refuse_number(char *problem, const char *kind, const char *driver, int count, int number)
{
  fail(problem, "found %d %s%s by %s, wanted at least %d", count, kind, count == 1 ? "" : "s", driver, number + 1);
  return count == 0 ? GPU_ABSENT : GPU_TOO_FEW;
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
