/* cuda.c: a GPU by CUDA's driver: SUMMA's product by cuBLAS, the wave by our own kernel, which NVRTC compiles.
 *
 * One stream computes, a second one transfers.
 */
#include "gpu.h"
#include "cuda_api.h"
#include "wave_kernel.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_WIDTH = 64, GROUP_HEIGHT = 4, MAX_GROUPS = 65535 }; /* MAX_GROUPS: CUDA's, one below the other */

typedef struct {
  Gpu gpu; /* the first member, so that a Gpu is a CudaGpu */
  CudaApi api;
  CublasApi cublas; /* of the first product */
  int device, major, minor;
  void *blas_library;
  CudaObject context, blas, module; /* NULL before they are needed */
} CudaGpu;

/* A piece of memory of the device, and the page-locked memory through which it is filled or read. */
typedef struct {
  CudaAddress device;
  void *host;
  size_t bytes;
} Staged;

typedef struct {
  GpuTask task; /* the first member, so that a GpuTask is a State */
  CudaObject compute_stream, transfer_stream, loaded, computed, kernel;
  CudaAddress cells, old; /* old: of the wave, the cells one step earlier */
  Staged in[GPU_SLOTS], out;
} State;

static CudaGpu *gpu_of(const State *s) { return (CudaGpu *)s->task.gpu; }

#define FUNCTION(structure, name) {#name, offsetof(structure, name)}
static const LibraryFunction functions[] = {
    FUNCTION(CudaApi, cuInit), FUNCTION(CudaApi, cuDriverGetVersion), FUNCTION(CudaApi, cuDeviceGetCount),
    FUNCTION(CudaApi, cuDeviceGet), FUNCTION(CudaApi, cuDeviceGetName), FUNCTION(CudaApi, cuDeviceGetAttribute),
    FUNCTION(CudaApi, cuDeviceTotalMem_v2), FUNCTION(CudaApi, cuDeviceGetPCIBusId), FUNCTION(CudaApi, cuDevicePrimaryCtxRetain),
    FUNCTION(CudaApi, cuCtxSetCurrent), FUNCTION(CudaApi, cuStreamCreate), FUNCTION(CudaApi, cuStreamDestroy_v2),
    FUNCTION(CudaApi, cuStreamWaitEvent), FUNCTION(CudaApi, cuStreamSynchronize), FUNCTION(CudaApi, cuEventCreate),
    FUNCTION(CudaApi, cuEventDestroy_v2), FUNCTION(CudaApi, cuEventRecord), FUNCTION(CudaApi, cuEventQuery),
    FUNCTION(CudaApi, cuEventSynchronize), FUNCTION(CudaApi, cuMemAlloc_v2), FUNCTION(CudaApi, cuMemFree_v2),
    FUNCTION(CudaApi, cuMemHostAlloc), FUNCTION(CudaApi, cuMemFreeHost), FUNCTION(CudaApi, cuMemsetD8Async),
    FUNCTION(CudaApi, cuMemcpyHtoDAsync_v2), FUNCTION(CudaApi, cuMemcpyDtoHAsync_v2), FUNCTION(CudaApi, cuModuleLoadData),
    FUNCTION(CudaApi, cuModuleUnload), FUNCTION(CudaApi, cuModuleGetFunction), FUNCTION(CudaApi, cuLaunchKernel),
    FUNCTION(CudaApi, cuGetErrorString),
};
static const LibraryFunction blas_functions[] = {
    FUNCTION(CublasApi, cublasCreate_v2), FUNCTION(CublasApi, cublasDestroy_v2), FUNCTION(CublasApi, cublasGetProperty),
    FUNCTION(CublasApi, cublasSetStream_v2), FUNCTION(CublasApi, cublasDgemm_v2),
};
static const LibraryFunction compiler_functions[] = {
    FUNCTION(NvrtcApi, nvrtcVersion), FUNCTION(NvrtcApi, nvrtcCreateProgram), FUNCTION(NvrtcApi, nvrtcCompileProgram),
    FUNCTION(NvrtcApi, nvrtcGetCUBINSize), FUNCTION(NvrtcApi, nvrtcGetCUBIN), FUNCTION(NvrtcApi, nvrtcGetProgramLogSize),
    FUNCTION(NvrtcApi, nvrtcGetProgramLog), FUNCTION(NvrtcApi, nvrtcDestroyProgram), FUNCTION(NvrtcApi, nvrtcGetErrorString),
};
#undef FUNCTION
static const char *const driver_names[] = {"libcuda.so.1"};
static const char *const blas_names[] = {"libcublas.so.12", "libcublas.so.13", "libcublas.so.11", "libcublas.so"};
static const char *const compiler_names[] = {"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so.11.2", "libnvrtc.so"};
enum {
  FUNCTIONS = sizeof functions / sizeof *functions,
  BLAS_FUNCTIONS = sizeof blas_functions / sizeof *blas_functions,
  COMPILER_FUNCTIONS = sizeof compiler_functions / sizeof *compiler_functions,
  DRIVER_NAMES = sizeof driver_names / sizeof *driver_names,
  BLAS_NAMES = sizeof blas_names / sizeof *blas_names,
  COMPILER_NAMES = sizeof compiler_names / sizeof *compiler_names,
};

/* Writes what a call of the driver says, and returns whether it succeeded. */
static bool check_call(const CudaApi *api, const char *call, int code, char *problem)
{
  const char *text = NULL;
  if (code == CUDA_SUCCESS) return true;
  if (api->cuGetErrorString(code, &text) != CUDA_SUCCESS || !text) text = "see cuda.h";
  fail(problem, "CUDA: %s failed with code %d: %.200s", call, code, text);
  return false;
}

static bool succeeded(CudaGpu *g, const char *call, int code) { return check_call(&g->api, call, code, g->gpu.problem); }

/* ---- devices ---- */

static void read_driver_version(char *text, size_t capacity)
{
  FILE *file = fopen("/sys/module/nvidia/version", "r");
  text[0] = '\0';
  if (!file) return;
  if (!fgets(text, (int)capacity, file)) text[0] = '\0';
  text[strcspn(text, "\n")] = '\0';
  fclose(file);
}

static void describe(CudaGpu *g)
{
  char name[128] = "unknown", driver[64];
  size_t memory = 0;
  int version = 0;
  g->api.cuDeviceGetName(name, sizeof name, g->device);
  g->api.cuDeviceTotalMem_v2(&memory, g->device);
  g->api.cuDriverGetVersion(&version);
  g->api.cuDeviceGetAttribute(&g->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, g->device);
  g->api.cuDeviceGetAttribute(&g->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, g->device);
  g->api.cuDeviceGetPCIBusId(g->gpu.address, sizeof g->gpu.address, g->device);
  for (char *c = g->gpu.address; *c; c++)
    if (*c >= 'A' && *c <= 'F') *c = (char)(*c - 'A' + 'a'); /* as in /sys */
  read_driver_version(driver, sizeof driver);
  snprintf(g->gpu.description, sizeof g->gpu.description, "%s, %.1f GiB, driver %s%sCUDA %d.%d, compute capability %d.%d", name,
           (double)memory / (1 << 30), driver, *driver ? ", " : "for ", version / 1000, version % 1000 / 10, g->major, g->minor);
}

static GpuCode choose_device(CudaGpu *g, int number, char *problem)
{
  int count = 0;
  setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0); /* the order of nvidia-smi, if the user does not want another */
  int code = g->api.cuInit(0);
  if (code == CUDA_ERROR_NO_DEVICE) return refuse_number(problem, "GPU", "CUDA", 0, number);
  if (!check_call(&g->api, "cuInit", code, problem)) return GPU_ABSENT;
  if (!check_call(&g->api, "cuDeviceGetCount", g->api.cuDeviceGetCount(&count), problem)) return GPU_FAILED;
  if (number >= count) return refuse_number(problem, "GPU", "CUDA", count, number);
  if (!check_call(&g->api, "cuDeviceGet", g->api.cuDeviceGet(&g->device, number), problem)) return GPU_FAILED;
  describe(g);
  return GPU_OPEN;
}

static bool load_blas(CudaGpu *g, char *problem)
{
  if (!g->blas_library) g->blas_library = open_library(blas_names, BLAS_NAMES, problem);
  return g->blas_library && find_functions(g->blas_library, blas_functions, BLAS_FUNCTIONS, &g->cublas, problem);
}

static bool load_compiler(NvrtcApi *nvrtc, char *problem)
{
  void *library = open_library(compiler_names, COMPILER_NAMES, problem);
  return library && find_functions(library, compiler_functions, COMPILER_FUNCTIONS, nvrtc, problem);
}

static void describe_libraries(Gpu *gpu, char *text)
{
  CudaGpu *g = (CudaGpu *)gpu;
  NvrtcApi nvrtc;
  char blas[GPU_TEXT / 2], compiler[GPU_TEXT / 2], problem[GPU_TEXT] = "";
  int version[3] = {0, 0, 0}, major = 0, minor = 0;
  if (load_blas(g, problem)) {
    for (int part = 0; part < 3; part++) g->cublas.cublasGetProperty(part, &version[part]);
    snprintf(blas, sizeof blas, "cuBLAS %d.%d.%d", version[0], version[1], version[2]);
  } else
    snprintf(blas, sizeof blas, "no cuBLAS (%.150s)", problem);
  if (load_compiler(&nvrtc, problem) && nvrtc.nvrtcVersion(&major, &minor) == 0)
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", major, minor);
  else
    snprintf(compiler, sizeof compiler, "no NVRTC (%.150s)", problem);
  snprintf(text, GPU_TEXT, "%.190s, %.190s", blas, compiler);
}

/* The primary context stays, so that the next case of the program finds it. */
static void close_gpu(Gpu *gpu)
{
  CudaGpu *g = (CudaGpu *)gpu;
  if (g->module) g->api.cuModuleUnload(g->module);
  if (g->blas) g->cublas.cublasDestroy_v2(g->blas);
  free(g);
}

/* ---- memory ---- */

static bool create_staged(CudaGpu *g, size_t bytes, Staged *staged)
{
  staged->bytes = bytes;
  return succeeded(g, "cuMemAlloc", g->api.cuMemAlloc_v2(&staged->device, bytes)) &&
         succeeded(g, "cuMemHostAlloc", g->api.cuMemHostAlloc(&staged->host, bytes, 0));
}

static void free_staged(CudaGpu *g, Staged *staged)
{
  if (staged->device) g->api.cuMemFree_v2(staged->device);
  if (staged->host) g->api.cuMemFreeHost(staged->host);
}

static size_t count_bytes(const State *s) { return s->task.rows * s->task.columns * sizeof(double); }

static bool create_matrix(State *s, const double *initial, CudaAddress *matrix)
{
  CudaGpu *g = gpu_of(s);
  size_t bytes = count_bytes(s);
  if (!succeeded(g, "cuMemAlloc", g->api.cuMemAlloc_v2(matrix, bytes))) return false;
  if (!initial) return succeeded(g, "cuMemsetD8Async", g->api.cuMemsetD8Async(*matrix, 0, bytes, s->compute_stream));
  return succeeded(g, "cuMemcpyHtoDAsync", g->api.cuMemcpyHtoDAsync_v2(*matrix, initial, bytes, s->compute_stream));
}

static void free_task(GpuTask *task)
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  for (int slot = 0; slot < GPU_SLOTS; slot++) free_staged(g, &s->in[slot]);
  free_staged(g, &s->out);
  if (s->cells) g->api.cuMemFree_v2(s->cells);
  if (s->old) g->api.cuMemFree_v2(s->old);
  if (s->loaded) g->api.cuEventDestroy_v2(s->loaded);
  if (s->computed) g->api.cuEventDestroy_v2(s->computed);
  if (s->transfer_stream) g->api.cuStreamDestroy_v2(s->transfer_stream);
  if (s->compute_stream) g->api.cuStreamDestroy_v2(s->compute_stream);
  free(s);
}

/* ---- tasks ---- */

static bool create_context(CudaGpu *g)
{
  if (!g->context && !succeeded(g, "cuDevicePrimaryCtxRetain", g->api.cuDevicePrimaryCtxRetain(&g->context, g->device)))
    return false;
  return succeeded(g, "cuCtxSetCurrent", g->api.cuCtxSetCurrent(g->context));
}

static bool blas_succeeded(CudaGpu *g, const char *call, int code)
{
  if (code == 0) return true;
  fail(g->gpu.problem, "cuBLAS: %s failed with code %d: see cublas_api.h", call, code);
  return false;
}

static bool open_blas(CudaGpu *g)
{
  if (g->blas) return true;
  if (!load_blas(g, g->gpu.problem)) return false;
  return blas_succeeded(g, "cublasCreate", g->cublas.cublasCreate_v2(&g->blas));
}

static bool compile(NvrtcApi *nvrtc, CudaObject program, const char *architecture, char *problem)
{
  const char *options[] = {architecture, "-fmad=false", "-DKERNEL=extern \"C\" __global__", "-DGLOBAL=",
                           "-DROW=(blockIdx.y*(unsigned long)blockDim.y+threadIdx.y)",
                           "-DCOLUMN=(blockIdx.x*(unsigned long)blockDim.x+threadIdx.x)"};
  char log[GPU_TEXT] = "";
  size_t length = 0;
  int code = nvrtc->nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
  if (code == 0) return true;
  if (nvrtc->nvrtcGetProgramLogSize(program, &length) == 0 && length > 1 && length < sizeof log)
    nvrtc->nvrtcGetProgramLog(program, log);
  fail(problem, "NVRTC: the kernel of the wave cannot be compiled for %.40s: %.100s %.200s", architecture,
       nvrtc->nvrtcGetErrorString(code), log);
  return false;
}

char *compile_cuda_wave(int major, int minor, size_t *bytes, char *problem)
{
  NvrtcApi nvrtc;
  CudaObject program = NULL;
  char architecture[40], *binary = NULL;
  if (!load_compiler(&nvrtc, problem)) return NULL;
  snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d%d", major, minor);
  int code = nvrtc.nvrtcCreateProgram(&program, wave_source, "wave.cu", 0, NULL, NULL);
  if (code) return fail(problem, "NVRTC: nvrtcCreateProgram failed: %.200s", nvrtc.nvrtcGetErrorString(code)), NULL;
  if (compile(&nvrtc, program, architecture, problem)) {
    code = nvrtc.nvrtcGetCUBINSize(program, bytes);
    binary = code ? NULL : malloc(*bytes);
    if (!binary || nvrtc.nvrtcGetCUBIN(program, binary)) {
      fail(problem, "NVRTC: found no compiled kernel, wanted one for %s", architecture);
      free(binary);
      binary = NULL;
    }
  }
  nvrtc.nvrtcDestroyProgram(&program);
  return binary;
}

static bool build_wave(CudaGpu *g)
{
  size_t bytes = 0;
  if (g->module) return true;
  char *binary = compile_cuda_wave(g->major, g->minor, &bytes, g->gpu.problem);
  if (!binary) return false;
  bool good = succeeded(g, "cuModuleLoadData", g->api.cuModuleLoadData(&g->module, binary));
  free(binary);
  return good;
}

static bool begin_wave(State *s, const double *initial)
{
  CudaGpu *g = gpu_of(s);
  if (s->task.rows > (size_t)MAX_GROUPS * GROUP_HEIGHT) {
    fail(g->gpu.problem, "CUDA: found %zu rows of cells, wanted at most %d", s->task.rows, MAX_GROUPS * GROUP_HEIGHT);
    return false;
  }
  return build_wave(g) && create_matrix(s, initial, &s->old) &&
         create_staged(g, count_input_bytes(&s->task), &s->out) &&
         succeeded(g, "cuModuleGetFunction", g->api.cuModuleGetFunction(&s->kernel, g->module, "wave_step"));
}

static bool begin_product(State *s)
{
  CudaGpu *g = gpu_of(s);
  const GpuTask *t = &s->task;
  if (t->rows > INT_MAX || t->columns > INT_MAX || t->block > INT_MAX) {
    fail(g->gpu.problem, "cuBLAS: found %zu x %zu doubles, wanted at most %d of each", t->rows, t->columns, INT_MAX);
    return false;
  }
  return open_blas(g) && blas_succeeded(g, "cublasSetStream", g->cublas.cublasSetStream_v2(g->blas, s->compute_stream));
}

static bool create_streams(State *s)
{
  CudaGpu *g = gpu_of(s);
  return succeeded(g, "cuStreamCreate", g->api.cuStreamCreate(&s->compute_stream, CU_STREAM_NON_BLOCKING)) &&
         succeeded(g, "cuStreamCreate", g->api.cuStreamCreate(&s->transfer_stream, CU_STREAM_NON_BLOCKING)) &&
         succeeded(g, "cuEventCreate", g->api.cuEventCreate(&s->loaded, CU_EVENT_DISABLE_TIMING)) &&
         succeeded(g, "cuEventCreate", g->api.cuEventCreate(&s->computed, CU_EVENT_DISABLE_TIMING));
}

static bool prepare(GpuTask *task, const double *initial)
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  if (!create_context(g) || !create_streams(s) || !create_matrix(s, initial, &s->cells)) return false;
  for (int slot = 0; slot < GPU_SLOTS; slot++) {
    if (!create_staged(g, count_input_bytes(task), &s->in[slot])) return false;
    task->input[slot] = s->in[slot].host;
  }
  if (!(task->wave ? begin_wave(s, initial) : begin_product(s))) return false;
  return succeeded(g, "cuStreamSynchronize", g->api.cuStreamSynchronize(s->compute_stream));
}

static bool copy_input(GpuTask *task, int slot)
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  const Staged *in = &s->in[slot];
  int code = g->api.cuMemcpyHtoDAsync_v2(in->device, in->host, in->bytes, s->transfer_stream);
  return succeeded(g, "cuMemcpyHtoDAsync", code) &&
         succeeded(g, "cuEventRecord", g->api.cuEventRecord(s->loaded, s->transfer_stream));
}

/* To cuBLAS, whose matrices are stored by columns, the matrices are transposed: C' += B' A'. */
static bool enqueue_product(State *s)
{
  CudaGpu *g = gpu_of(s);
  const GpuTask *t = &s->task;
  const int rows = (int)t->rows, columns = (int)t->columns, block = (int)t->block;
  const double one = 1;
  const CudaAddress a = s->in[t->computing].device, b = a + t->rows * t->block * sizeof(double);
  int code = g->cublas.cublasDgemm_v2(g->blas, CUBLAS_NO_TRANSPOSE, CUBLAS_NO_TRANSPOSE, columns, rows, block, &one, b, columns, a,
                                      block, &one, s->cells, columns);
  return blas_succeeded(g, "cublasDgemm", code);
}

static bool enqueue_step(State *s)
{
  CudaGpu *g = gpu_of(s);
  unsigned long rows = s->task.rows, columns = s->task.columns;
  void *values[] = {&s->old, &s->cells, &s->in[s->task.computing].device, &s->out.device, &rows, &columns};
  const unsigned across = (unsigned)((columns + GROUP_WIDTH - 1) / GROUP_WIDTH);
  const unsigned down = (unsigned)((rows + GROUP_HEIGHT - 1) / GROUP_HEIGHT);
  int code = g->api.cuLaunchKernel(s->kernel, across, down, 1, GROUP_WIDTH, GROUP_HEIGHT, 1, 0, s->compute_stream, values, NULL);
  if (!succeeded(g, "cuLaunchKernel", code)) return false;
  code = g->api.cuMemcpyDtoHAsync_v2(s->out.host, s->out.device, s->out.bytes, s->compute_stream);
  CudaAddress next = s->old;
  s->old = s->cells;
  s->cells = next;
  return succeeded(g, "cuMemcpyDtoHAsync", code);
}

static int start(GpuTask *task)
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  if (!succeeded(g, "cuStreamWaitEvent", g->api.cuStreamWaitEvent(s->compute_stream, s->loaded, 0))) return -1;
  if (!(task->wave ? enqueue_step(s) : enqueue_product(s))) return -1;
  return succeeded(g, "cuEventRecord", g->api.cuEventRecord(s->computed, s->compute_stream)) ? 0 : -1;
}

static int finished(GpuTask *task, bool wait, double *const out[4])
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  int code = wait ? g->api.cuEventSynchronize(s->computed) : g->api.cuEventQuery(s->computed);
  if (code == CUDA_ERROR_NOT_READY) return 0;
  if (!succeeded(g, wait ? "cuEventSynchronize" : "cuEventQuery", code)) return -1;
  if (task->wave) unpack_edges(task, s->out.host, out);
  return 1;
}

static int end(GpuTask *task, double *result)
{
  State *s = (State *)task;
  CudaGpu *g = gpu_of(s);
  int code = g->api.cuMemcpyDtoHAsync_v2(result, s->cells, count_bytes(s), s->compute_stream);
  bool good = succeeded(g, "cuMemcpyDtoHAsync", code) &&
              succeeded(g, "cuStreamSynchronize", g->api.cuStreamSynchronize(s->compute_stream));
  free_task(task);
  return good ? 0 : -1;
}

GpuCode open_cuda_gpu(int number, Gpu **gpu, char *problem)
{
  CudaGpu *g = calloc(1, sizeof *g);
  if (!g) return fail(problem, "the memory of the host is full"), GPU_FAILED;
  g->gpu = (Gpu){.task_bytes = sizeof(State), .prepare = prepare, .copy_input = copy_input, .free_task = free_task,
                 .start = start, .finished = finished, .end = end, .describe_libraries = describe_libraries,
                 .close = close_gpu};
  GpuCode code = GPU_ABSENT;
  void *library = open_library(driver_names, DRIVER_NAMES, problem);
  if (library && find_functions(library, functions, FUNCTIONS, &g->api, problem)) code = choose_device(g, number, problem);
  if (code == GPU_OPEN)
    *gpu = &g->gpu;
  else
    free(g);
  return code;
}
