/* device.c: the processor, BLAS library, GPU or accelerator of this rank, from its environment.
 *
 *   COMMODEL_DRIVES       number of the GPU on its node that this rank drives (harness/cores.c)
 *   COMMODEL_ACCELERATOR  cuda, opencl, or the path of a shared object as in accelerator.h. Default: a rank that drives a GPU
 *                         finds it, and the processors of other ranks compute. If the layout assigns GPUs, only their
 *                         ranks have the variable. Without such a layout all ranks drive GPU 0
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

static long long read_gpu_number(void)
{
  const char *text = getenv("COMMODEL_DRIVES");
  long long number = 0;
  if (text && (!parse_integer(text, &number) || number < 0 || number > INT32_MAX))
    user_error("COMMODEL_DRIVES: found '%.80s', wanted the number of a GPU", text);
  return number;
}

static void open_named_gpu(Device *device, const char *kind)
{
  int number = (int)read_gpu_number();
  char problem[GPU_TEXT] = "";
  device->gpu_kind = kind;
  GpuCode code = strcmp(kind, "cuda") == 0 ? open_cuda_gpu(number, &device->gpu, problem)
                                           : open_opencl_gpu(number, false, &device->gpu, problem);
  if (code != GPU_OPEN) user_error("%s", problem);
}

/* By CUDA, or by OpenCL if there is no driver of CUDA. */
static void find_gpu(Device *device)
{
  int number = (int)read_gpu_number();
  char problem[GPU_TEXT] = "", of_opencl[GPU_TEXT] = "";
  device->gpu_kind = "cuda";
  GpuCode code = open_cuda_gpu(number, &device->gpu, problem);
  if (code == GPU_OPEN) return;
  if (code == GPU_FAILED) user_error("%s", problem);
  device->gpu_kind = "opencl";
  if (open_opencl_gpu(number, true, &device->gpu, of_opencl) != GPU_OPEN) user_error("%s; %s", problem, of_opencl);
}

/* A path of the user, not a name that the loader searches for. */
static void open_accelerator(Device *device, const char *path)
{
  struct stat status;
  if (path[0] != '/') user_error("%s: found '%s', wanted cuda, opencl, or the absolute path of a shared object", accelerator_variable, path);
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
  const char *accelerator = getenv(accelerator_variable);
  bool named = accelerator && *accelerator;
  if (named && (strcmp(accelerator, "cuda") == 0 || strcmp(accelerator, "opencl") == 0))
    open_named_gpu(&device, accelerator);
  else if (named)
    open_accelerator(&device, accelerator);
  else if (getenv("COMMODEL_DRIVES"))
    find_gpu(&device);
  else
    find_blas(&device);
  return device;
}

void close_device(Device *device)
{
  if (device->gpu) device->gpu->close(device->gpu);
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
  if (device.gpu)
    snprintf(text, CAPACITY, "rank 0: %s, %.*s", device.gpu_kind, GPU_TEXT, device.gpu->description);
  else if (device.library)
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
