/* errors.c: the three kinds of fatal error, and an allocation that checks for failure. */
#include "harness.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_USER = 2, EXIT_BROKEN = 3 };

static _Noreturn void end_all(int code)
{
  fflush(stdout);
  fflush(stderr);
#if COMMODEL_SIMULATED
  /* SimGrid 3.32's MPI_Abort kills the actors and then reports success (smpirun exits with 0), so the one process
   * that holds all ranks is ended instead. */
  _exit(code);
#elif !defined COMMODEL_WITHOUT_MPI
  int up = 0;
  if (MPI_Initialized(&up) == MPI_SUCCESS && up) {
    /* MPICH's mpiexec may lose the last line if the abort arrives first: give it time to print the line. */
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
  }
#endif
  _Exit(code);
}

static void print_line(const char *file, int line, const char *format, va_list arguments)
{
  char text[2048], whole[2560]; /* written with one call, so that lines of several ranks are not interleaved */
  vsnprintf(text, sizeof text, format, arguments);
  if (file)
    snprintf(whole, sizeof whole, "%s:%d: %s\n", file, line, text);
  else
    snprintf(whole, sizeof whole, "error: %s\n", text);
  fputs(whole, stderr);
}

_Noreturn void harness_die(const char *file, int line, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  print_line(file, line, format, arguments);
  va_end(arguments);
  end_all(EXIT_BROKEN);
}

_Noreturn void user_error(const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  print_line(NULL, 0, format, arguments);
  va_end(arguments);
  end_all(EXIT_USER);
}

#ifndef COMMODEL_WITHOUT_MPI
_Noreturn void harness_die_mpi(const char *file, int line, const char *call, int code)
{
  char text[MPI_MAX_ERROR_STRING] = "unknown MPI error";
  int length = 0;
  MPI_Error_string(code, text, &length);
  harness_die(file, line, "%s failed: %s", call, text);
}
#endif

void *allocate(size_t count, size_t size)
{
  void *memory = calloc(count ? count : 1, size ? size : 1);
  if (!memory) DIE("no memory for %zu items of %zu bytes", count, size);
  return memory;
}
