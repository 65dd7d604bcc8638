/* libraries.c: functions of libraries that are opened when a program runs. */
#include "gpu.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
