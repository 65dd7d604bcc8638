/* device.c: the processor, BLAS library or accelerator of this rank, from its environment.
 *
 *   COMMODEL_ACCELERATOR  path of a shared object as in accelerator.h; default: the rank's processor computes. If the
 *                         layout assigns accelerators, only their ranks have the variable (harness/cores.c)
 *   COMMODEL_BLAS         path or name of a library with Fortran's dgemm, or none for the program's own loop; default:
 *                         the first available library of a list
 *   OMP_NUM_THREADS       threads of a rank; default: one
 *
 * Libraries are loaded by name when a program runs, so that building needs none of them.
 */
#include "kernels.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_THREADS = 4096 };
static const char accelerator_variable[] = "COMMODEL_ACCELERATOR", blas_variable[] = "COMMODEL_BLAS";
static const char *const known_libraries[] = {"libmkl_rt.so.2", "libmkl_rt.so", "libopenblas.so.0", "libblis.so.4", "libblas.so.3"};
static const char *const names_of_dgemm[] = {"dgemm_", "scipy_dgemm_64_", "dgemm_64_"};

/* ISO C has no cast for this. */
static bool find_function(void *library, const char *name, void *function)
{
  void *address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

static int read_thread_count(void)
{
  const char *text = getenv("OMP_NUM_THREADS");
  long long threads = 1;
  if (text && *text && (!parse_integer(text, &threads) || threads < 1 || threads > MAX_THREADS))
    user_error("OMP_NUM_THREADS: found '%.80s', wanted a whole number from 1 to %d", text, MAX_THREADS);
#ifndef _OPENMP
  if (threads > 1)
    user_error("OMP_NUM_THREADS: found %lld, wanted 1: the compiler of these programs has no OpenMP", threads);
#endif
  return (int)threads;
}

/* A path of the user, not a name that the loader searches for. */
static void open_accelerator(Device *device, const char *path)
{
  struct stat status;
  if (path[0] != '/') user_error("%s: found '%s', wanted the absolute path of a shared object", accelerator_variable, path);
  if (stat(path, &status) != 0) user_error("%s: %s: %s", accelerator_variable, path, strerror(errno));
  if (!S_ISREG(status.st_mode)) user_error("%s: %s: found no file, wanted a shared object", accelerator_variable, path);
  if (status.st_mode & S_IWOTH) user_error("%s: %s: found a file that is writable by all users", accelerator_variable, path);
  device->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!device->library) user_error("%s: %s", accelerator_variable, dlerror());
  if (!find_function(device->library, "commodel_begin", &device->begin) ||
      !find_function(device->library, "commodel_update", &device->update) ||
      !find_function(device->library, "commodel_end", &device->end))
    user_error("%s: %s: wanted the functions commodel_begin, commodel_update and commodel_end", accelerator_variable, path);
}

static bool open_blas(Device *device, const char *name)
{
  void (*set_threads)(int) = NULL;
  device->blas = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!device->blas) return false;
  for (size_t k = 0; k < sizeof names_of_dgemm / sizeof *names_of_dgemm && !device->dgemm; k++)
    find_function(device->blas, names_of_dgemm[k], &device->dgemm);
  if (!device->dgemm) {
    dlclose(device->blas);
    device->blas = NULL;
    return false;
  }
  device->name = name;
  if (find_function(device->blas, "openblas_set_num_threads", &set_threads) ||
      find_function(device->blas, "scipy_openblas_set_num_threads64_", &set_threads))
    set_threads(device->threads); /* the library may have read another value */
  return true;
}

static void find_blas(Device *device)
{
  const char *name = getenv(blas_variable);
  if (!name || !*name) {
    for (size_t k = 0; k < sizeof known_libraries / sizeof *known_libraries; k++)
      if (open_blas(device, known_libraries[k])) return;
    return;
  }
  if (strcmp(name, "none") != 0 && !open_blas(device, name))
    user_error("%s: found '%.200s', wanted none or a library with the function dgemm_", blas_variable, name);
}

Device open_device(void)
{
  Device device = {.threads = read_thread_count()};
  const char *accelerator = getenv(accelerator_variable), *drives = getenv("COMMODEL_DRIVES");
  if (drives && !(accelerator && *accelerator))
    user_error("%s: found nothing, wanted the shared object that computes for a process with a %.80s",
               accelerator_variable, drives);
  if (accelerator && *accelerator)
    open_accelerator(&device, accelerator);
  else
    find_blas(&device);
  return device;
}

void close_device(Device *device)
{
  if (device->library) dlclose(device->library);
  if (device->blas) dlclose(device->blas);
}

/* The device of rank 0; other ranks may have more threads, or an accelerator. */
char *describe_device(void)
{
  enum { CAPACITY = 640 };
  char *text = allocate(CAPACITY, 1), *(*config)(void) = NULL;
  if (COMMODEL_SIMULATED) {
    snprintf(text, CAPACITY, "nothing: time is simulated; only communication is executed, and overlapped computation is a wait");
    return text;
  }
  Device device = open_device();
  if (device.library)
    snprintf(text, CAPACITY, "rank 0: %.400s", getenv(accelerator_variable));
  else if (!device.dgemm)
    snprintf(text, CAPACITY, "rank 0: the program's own blocked loop, threads %d", device.threads);
  else {
    bool has_version = find_function(device.blas, "openblas_get_config", &config);
    snprintf(text, CAPACITY, "rank 0: dgemm of %.200s%s%.200s, threads %d", device.name, has_version ? ", " : "",
             has_version ? config() : "", device.threads);
  }
  close_device(&device);
  return text;
}
