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

static bool read_thread_count(Device *device, char *problem)
{
  const char *text = getenv("OMP_NUM_THREADS");
  long long threads = 1;
  if (text && *text && (!parse_integer(text, &threads) || threads < 1 || threads > MAX_THREADS))
    return fail(problem, "OMP_NUM_THREADS: found '%.80s', wanted a whole number from 1 to %d", text, MAX_THREADS), false;
#ifndef _OPENMP
  if (threads > 1)
    return fail(problem, "OMP_NUM_THREADS: found %lld, wanted 1: the compiler of these programs has no OpenMP", threads), false;
#endif
  device->threads = (int)threads;
  return true;
}

/* 0 in a layout that assigns no GPUs. */
static bool read_gpu_number(int *number, char *problem)
{
  const char *text = getenv("COMMODEL_DRIVES");
  long long value = 0;
  if (text && (!parse_integer(text, &value) || value < 0 || value > INT32_MAX))
    return fail(problem, "COMMODEL_DRIVES: found '%.80s', wanted the number of a GPU", text), false;
  *number = (int)value;
  return true;
}

static GpuCode open_named_gpu(Device *device, const char *kind, int number, char *problem)
{
  device->gpu_kind = kind;
  if (strcmp(kind, "cuda") == 0) return open_cuda_gpu(number, &device->gpu, problem);
  return open_opencl_gpu(number, false, &device->gpu, problem);
}

/* By CUDA, or by OpenCL if there is no driver of CUDA, or no GPU. OpenCL may list the GPUs of CUDA again, so that it does
 * not add to too few of them. */
static GpuCode find_gpu(Device *device, int number, char *problem)
{
  char of_opencl[GPU_TEXT] = "", of_cuda[GPU_TEXT] = "";
  device->gpu_kind = "cuda";
  GpuCode code = open_cuda_gpu(number, &device->gpu, of_cuda);
  if (code != GPU_ABSENT) {
    fail(problem, "%s", of_cuda);
    return code;
  }
  device->gpu_kind = "opencl";
  code = open_opencl_gpu(number, true, &device->gpu, of_opencl);
  if (code == GPU_ABSENT && open_opencl_gpu(0, false, &device->gpu, problem) == GPU_OPEN) {
    const char *hint = "; COMMODEL_ACCELERATOR=opencl lets a processor compute in place of a GPU";
    device->gpu->close(device->gpu);
    device->gpu = NULL;
    fail(problem, "%.140s; %.140s%s", of_cuda, of_opencl, hint);
  } else
    fail(problem, "%.190s; %.190s", of_cuda, of_opencl);
  return code;
}

static bool check_accelerator(const char *path, char *problem)
{
  struct stat status;
  if (path[0] != '/')
    fail(problem, "%s: found '%s', wanted cuda, opencl, or the absolute path of a shared object", accelerator_variable, path);
  else if (stat(path, &status) != 0)
    fail(problem, "%s: %s: %s", accelerator_variable, path, strerror(errno));
  else if (!S_ISREG(status.st_mode))
    fail(problem, "%s: %s: found no file, wanted a shared object", accelerator_variable, path);
  else if (status.st_mode & S_IWOTH)
    fail(problem, "%s: %s: found a file that is writable by all users", accelerator_variable, path);
  else
    return true;
  return false;
}

/* A path of the user, not a name that the loader searches for. */
static bool open_accelerator(Device *device, const char *path, char *problem)
{
  if (!check_accelerator(path, problem)) return false;
  device->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!device->library) return fail(problem, "%s: %s", accelerator_variable, dlerror()), false;
  if (find_function(device->library, "commodel_begin", &device->begin) &&
      find_function(device->library, "commodel_update", &device->update) && find_function(device->library, "commodel_end", &device->end))
    return true;
  fail(problem, "%s: %s: wanted the functions commodel_begin, commodel_update and commodel_end", accelerator_variable, path);
  return false;
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

static bool find_blas(Device *device, char *problem)
{
  const char *name = getenv(blas_variable);
  if (!name || !*name) {
    for (size_t k = 0; k < sizeof known_libraries / sizeof *known_libraries; k++)
      if (open_blas(device, known_libraries[k])) return true;
    return true;
  }
  if (strcmp(name, "none") == 0 || open_blas(device, name)) return true;
  fail(problem, "%s: found '%.200s', wanted none or a library with the function dgemm_", blas_variable, name);
  return false;
}

static bool open_gpu(Device *device, int number, char *problem)
{
  const char *kind = getenv(accelerator_variable);
  GpuCode code = kind && *kind ? open_named_gpu(device, kind, number, problem) : find_gpu(device, number, problem);
  if (code == GPU_TOO_FEW) {
    char found[GPU_TEXT];
    snprintf(found, sizeof found, "%s", problem);
    fail(problem, "%.300s; processes share a GPU if their layout says gpu:0", found);
  }
  return code == GPU_OPEN;
}

static bool try_to_open(Device *device, char *problem)
{
  const char *accelerator = getenv(accelerator_variable);
  int number;
  *device = (Device){0};
  if (!read_thread_count(device, problem) || !read_gpu_number(&number, problem)) return false;
  bool named = accelerator && *accelerator, built_in = named && (strcmp(accelerator, "cuda") == 0 || strcmp(accelerator, "opencl") == 0);
  if (named && !built_in) return open_accelerator(device, accelerator, problem);
  return built_in || getenv("COMMODEL_DRIVES") ? open_gpu(device, number, problem) : find_blas(device, problem);
}

bool locate_gpu(int number, char *address)
{
  const char *accelerator = getenv(accelerator_variable);
  Device device = {0};
  char problem[GPU_TEXT];
  if (accelerator && *accelerator == '/') return false;
  if (!open_gpu(&device, number, problem)) return false;
  snprintf(address, ADDRESS_BYTES, "%s", device.gpu->address);
  close_device(&device);
  return *address;
}

Device open_device(void)
{
  Device device;
  char problem[GPU_TEXT] = "";
  if (!try_to_open(&device, problem)) user_error("%s", problem);
  return device;
}

void close_device(Device *device)
{
  if (device->gpu) device->gpu->close(device->gpu);
  if (device->library) dlclose(device->library);
  if (device->blas) dlclose(device->blas);
}

static void describe_open_device(const Device *device, char *text)
{
  char *(*config)(void) = NULL;
  char libraries[GPU_TEXT] = "";
  if (device->gpu) device->gpu->describe_libraries(device->gpu, libraries);
  if (device->gpu)
    snprintf(text, COMPUTING_BYTES, "%s, %.300s, %.300s", device->gpu_kind, device->gpu->description, libraries);
  else if (device->library)
    snprintf(text, COMPUTING_BYTES, "%.400s", getenv(accelerator_variable));
  else if (!device->dgemm)
    snprintf(text, COMPUTING_BYTES, "the program's own blocked loop, threads %d", device->threads);
  else {
    bool has_version = find_function(device->blas, "openblas_get_config", &config);
    snprintf(text, COMPUTING_BYTES, "dgemm of %.200s%s%.200s, threads %d", device->name, has_version ? ", " : "",
             has_version ? config() : "", device->threads);
  }
}

bool describe_device(char *text)
{
  Device device;
  if (COMMODEL_SIMULATED) {
    snprintf(text, COMPUTING_BYTES, "nothing: time is simulated; only communication is executed, and overlapped computation is a wait");
    return true;
  }
  if (!try_to_open(&device, text)) return false;
  describe_open_device(&device, text);
  close_device(&device);
  return true;
}
