/* opencl.c: a GPU by OpenCL 1.2: SUMMA's product by CLBlast, the wave by our own kernel.
 *
 * One queue computes, a second one transfers.
 */
#include "gpu.h"
#include "opencl_api.h"
#include "wave_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PLATFORMS = 16, MAX_DEVICES = 64, UUID_BYTES = 16, GROUP_WIDTH = 64, GROUP_HEIGHT = 4 };

typedef struct {
  Gpu gpu; /* the first member, so that a Gpu is an OpenClGpu */
  OpenClApi api;
  void *library, *blas;
  ClblastDgemm *dgemm; /* NULL without CLBlast */
  char blas_problem[GPU_TEXT];
  ClObject device, context, compute_queue, transfer_queue, program; /* NULL before the first task */
  uint64_t most_bytes; /* of one buffer */
  size_t group[2];     /* cells of a row and rows of a group of the wave's kernel */
} OpenClGpu;

/* A piece of memory of the device, and the page-locked memory through which it is filled or read. */
typedef struct {
  ClObject device, host;
  char *mapped;
  size_t bytes;
} Staged;

typedef struct {
  GpuTask task; /* the first member, so that a GpuTask is a State */
  ClObject cells, old; /* old: of the wave, the cells one step earlier */
  Staged in[GPU_SLOTS], out;
  ClObject loaded, computed, kernel; /* events, NULL if there is none; the wave's kernel */
} State;

static OpenClGpu *gpu_of(const State *s) { return (OpenClGpu *)s->task.gpu; }

static const LibraryFunction functions[] = {
#define FUNCTION(name) {#name, offsetof(OpenClApi, name)}
    FUNCTION(clGetPlatformIDs), FUNCTION(clGetDeviceIDs), FUNCTION(clGetDeviceInfo), FUNCTION(clCreateContext),
    FUNCTION(clCreateCommandQueue), FUNCTION(clCreateBuffer), FUNCTION(clCreateProgramWithSource), FUNCTION(clBuildProgram),
    FUNCTION(clGetProgramBuildInfo), FUNCTION(clCreateKernel), FUNCTION(clSetKernelArg), FUNCTION(clEnqueueNDRangeKernel),
    FUNCTION(clEnqueueWriteBuffer), FUNCTION(clEnqueueReadBuffer), FUNCTION(clEnqueueFillBuffer), FUNCTION(clEnqueueMapBuffer),
    FUNCTION(clEnqueueUnmapMemObject), FUNCTION(clEnqueueMarkerWithWaitList), FUNCTION(clEnqueueBarrierWithWaitList),
    FUNCTION(clFlush), FUNCTION(clFinish), FUNCTION(clWaitForEvents), FUNCTION(clGetEventInfo), FUNCTION(clReleaseEvent),
    FUNCTION(clReleaseMemObject), FUNCTION(clReleaseKernel), FUNCTION(clReleaseProgram), FUNCTION(clReleaseCommandQueue),
    FUNCTION(clReleaseContext),
#undef FUNCTION
};

/* The codes that a user may meet; of others, the number says enough to look it up. */
static const char *describe_code(int code)
{
  switch (code) {
  case -2: return "the device is not available";
  case -4: return "the memory of the device is full";
  case -5: return "the device has no resources left, or is lost";
  case -6: return "the memory of the host is full";
  case -11: return "the kernel cannot be compiled";
  case -14: return "an earlier command failed";
  case -61: return "a buffer is larger than the device allows";
  default: return "see cl.h";
  }
}

/* Returns whether a call succeeded. */
static bool succeeded(OpenClGpu *g, const char *call, int code)
{
  if (code >= 0) return true;
  fail(g->gpu.problem, "OpenCL: %s failed with code %d: %s", call, code, describe_code(code));
  return false;
}

/* ---- devices ---- */

static void read_text_of_device(const OpenClGpu *g, uint32_t what, char *text, size_t capacity)
{
  text[0] = '\0';
  g->api.clGetDeviceInfo(g->device, what, capacity, text, NULL);
  text[capacity - 1] = '\0';
}

/* A number of 4 or 8 bytes, on a machine whose numbers begin with the lowest byte; 0: unknown. */
static uint64_t read_number(const OpenClApi *api, ClObject device, uint32_t what)
{
  uint64_t number = 0;
  return api->clGetDeviceInfo(device, what, sizeof number, &number, NULL) == 0 ? number : 0;
}

static uint64_t read_number_of_device(const OpenClGpu *g, uint32_t what) { return read_number(&g->api, g->device, what); }

/* Writes the address on the PCI bus, or an empty text. */
static void read_address(const OpenClApi *api, ClObject device, char *address)
{
  struct { uint32_t domain, bus, device, function; } place;
  address[0] = '\0';
  if (api->clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof place, &place, NULL) == 0)
    snprintf(address, GPU_ADDRESS, "%04x:%02x:%02x.%x", place.domain, place.bus, place.device, place.function);
}

/* Whether two platforms list the same device, such as two drivers of one card. The processors of two platforms are the
 * same, as those of pocl and of another driver of processors. */
static bool is_same_device(const OpenClApi *api, ClObject one, ClObject other)
{
  char address[GPU_ADDRESS], other_address[GPU_ADDRESS];
  unsigned char uuid[UUID_BYTES], other_uuid[UUID_BYTES];
  uint64_t type = read_number(api, one, CL_DEVICE_TYPE), other_type = read_number(api, other, CL_DEVICE_TYPE);
  if (one == other || (type & other_type & CL_DEVICE_TYPE_CPU)) return true;
  read_address(api, one, address);
  read_address(api, other, other_address);
  if (*address && *other_address) return strcmp(address, other_address) == 0;
  return api->clGetDeviceInfo(one, CL_DEVICE_UUID_KHR, sizeof uuid, uuid, NULL) == 0 &&
         api->clGetDeviceInfo(other, CL_DEVICE_UUID_KHR, sizeof other_uuid, other_uuid, NULL) == 0 &&
         memcmp(uuid, other_uuid, sizeof uuid) == 0;
}

/* Lists the devices of all platforms. A device that an earlier platform has is not listed again. */
static int list_devices(const OpenClApi *api, uint64_t type, ClObject *devices)
{
  ClObject platforms[MAX_PLATFORMS], of_platform[MAX_DEVICES];
  uint32_t platform_count = 0, found = 0;
  int count = 0;
  if (api->clGetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count) != 0) return 0;
  for (uint32_t p = 0; p < platform_count && p < MAX_PLATFORMS; p++) {
    const int earlier = count;
    if (api->clGetDeviceIDs(platforms[p], type, MAX_DEVICES, of_platform, &found) != 0) continue;
    for (uint32_t k = 0; k < found && k < MAX_DEVICES && count < MAX_DEVICES; k++) {
      bool listed = false;
      for (int d = 0; d < earlier && !listed; d++) listed = is_same_device(api, devices[d], of_platform[k]);
      if (!listed) devices[count++] = of_platform[k];
    }
  }
  return count;
}

static void describe(OpenClGpu *g)
{
  char name[128], driver[128], version[256];
  read_text_of_device(g, CL_DEVICE_NAME, name, sizeof name);
  read_text_of_device(g, CL_DRIVER_VERSION, driver, sizeof driver);
  read_text_of_device(g, CL_DEVICE_VERSION, version, sizeof version);
  uint64_t memory = read_number_of_device(g, CL_DEVICE_GLOBAL_MEM_SIZE);
  bool processor = !(read_number_of_device(g, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU);
  snprintf(g->gpu.description, sizeof g->gpu.description, "%s%s, %.1f GiB, driver %s, %.100s", name,
           processor ? " (no GPU)" : "", (double)memory / (1 << 30), driver, version);
  read_address(&g->api, g->device, g->gpu.address);
}

/* CLBlast does not tell its version. */
static void describe_libraries(Gpu *gpu, char *text)
{
  const OpenClGpu *g = (const OpenClGpu *)gpu;
  if (g->dgemm)
    snprintf(text, GPU_TEXT, "CLBlast");
  else
    snprintf(text, GPU_TEXT, "no CLBlast (%.300s)", g->blas_problem);
}

static void close_gpu(Gpu *gpu)
{
  OpenClGpu *g = (OpenClGpu *)gpu;
  if (g->program) g->api.clReleaseProgram(g->program);
  if (g->transfer_queue) g->api.clReleaseCommandQueue(g->transfer_queue);
  if (g->compute_queue) g->api.clReleaseCommandQueue(g->compute_queue);
  if (g->context) g->api.clReleaseContext(g->context);
  free(g); /* libraries stay: drivers have threads and handlers of exit */
}

static void open_blas(OpenClGpu *g)
{
  static const char *const names[] = {"libclblast.so.1", "libclblast.so"};
  g->blas = open_library(names, sizeof names / sizeof *names, g->blas_problem);
  if (g->blas && !find_function(g->blas, "CLBlastDgemm", &g->dgemm))
    fail(g->blas_problem, "libclblast has no function CLBlastDgemm");
}

static GpuCode choose_device(OpenClGpu *g, int number, bool only_gpus, char *problem)
{
  ClObject devices[MAX_DEVICES];
  int count = list_devices(&g->api, CL_DEVICE_TYPE_GPU, devices);
  if (count == 0 && !only_gpus) count = list_devices(&g->api, CL_DEVICE_TYPE_ALL, devices);
  if (number >= count) return refuse_number(problem, only_gpus ? "GPU" : "device", "OpenCL", count, number);
  g->device = devices[number];
  describe(g);
  g->most_bytes = read_number_of_device(g, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  if (read_number_of_device(g, CL_DEVICE_DOUBLE_FP_CONFIG)) return GPU_OPEN;
  fail(problem, "OpenCL device %d, %.200s: found no double precision", number, g->gpu.description);
  return GPU_FAILED;
}

/* ---- memory ---- */

static bool create_buffer(OpenClGpu *g, size_t bytes, uint64_t flags, ClObject *buffer)
{
  int32_t code = 0;
  if (g->most_bytes && bytes > g->most_bytes) {
    fail(g->gpu.problem, "OpenCL: found %zu bytes of a rectangle, wanted at most %llu, the largest buffer of the device", bytes,
         (unsigned long long)g->most_bytes);
    return false;
  }
  *buffer = g->api.clCreateBuffer(g->context, CL_MEM_READ_WRITE | flags, bytes, NULL, &code);
  return succeeded(g, "clCreateBuffer", code);
}

static bool create_staged(OpenClGpu *g, size_t bytes, Staged *staged)
{
  int32_t code = 0;
  staged->bytes = bytes;
  if (!create_buffer(g, bytes, 0, &staged->device) || !create_buffer(g, bytes, CL_MEM_ALLOC_HOST_PTR, &staged->host)) return false;
  staged->mapped = g->api.clEnqueueMapBuffer(g->transfer_queue, staged->host, 1, CL_MAP_READ | CL_MAP_WRITE, 0, bytes, 0, NULL,
                                             NULL, &code);
  return succeeded(g, "clEnqueueMapBuffer", code);
}

static void free_staged(OpenClGpu *g, Staged *staged)
{
  if (staged->mapped) g->api.clEnqueueUnmapMemObject(g->transfer_queue, staged->host, staged->mapped, 0, NULL, NULL);
  if (staged->mapped) g->api.clFinish(g->transfer_queue);
  if (staged->host) g->api.clReleaseMemObject(staged->host);
  if (staged->device) g->api.clReleaseMemObject(staged->device);
}

static size_t count_bytes(const State *s) { return s->task.rows * s->task.columns * sizeof(double); }

static bool create_matrix(State *s, const double *initial, ClObject *matrix)
{
  OpenClGpu *g = gpu_of(s);
  size_t bytes = count_bytes(s);
  const double zero = 0;
  if (!create_buffer(g, bytes, 0, matrix)) return false;
  if (initial)
    return succeeded(g, "clEnqueueWriteBuffer",
                     g->api.clEnqueueWriteBuffer(g->compute_queue, *matrix, 1, 0, bytes, initial, 0, NULL, NULL));
  int32_t code = g->api.clEnqueueFillBuffer(g->compute_queue, *matrix, &zero, sizeof zero, 0, bytes, 0, NULL, NULL);
  return succeeded(g, "clEnqueueFillBuffer", code);
}

static void forget_event(const OpenClGpu *g, ClObject *event)
{
  if (*event) g->api.clReleaseEvent(*event);
  *event = NULL;
}

static void free_task(GpuTask *task)
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  forget_event(g, &s->loaded);
  forget_event(g, &s->computed);
  for (int slot = 0; slot < GPU_SLOTS; slot++) free_staged(g, &s->in[slot]);
  free_staged(g, &s->out);
  if (s->kernel) g->api.clReleaseKernel(s->kernel);
  if (s->cells) g->api.clReleaseMemObject(s->cells);
  if (s->old) g->api.clReleaseMemObject(s->old);
  free(s);
}

/* ---- tasks ---- */

static bool create_context(OpenClGpu *g)
{
  int32_t code = 0;
  if (g->context) return true;
  g->context = g->api.clCreateContext(NULL, 1, &g->device, NULL, NULL, &code);
  if (!succeeded(g, "clCreateContext", code)) return false;
  g->compute_queue = g->api.clCreateCommandQueue(g->context, g->device, 0, &code);
  if (!succeeded(g, "clCreateCommandQueue", code)) return false;
  g->transfer_queue = g->api.clCreateCommandQueue(g->context, g->device, 0, &code);
  return succeeded(g, "clCreateCommandQueue", code);
}

static bool build_wave(OpenClGpu *g)
{
  static const char options[] = "-DKERNEL=__kernel -DGLOBAL=__global -DROW=get_global_id(1) -DCOLUMN=get_global_id(0)";
  const char *texts[] = {"#pragma OPENCL FP_CONTRACT OFF\n", wave_source};
  int32_t code = 0;
  if (g->program) return true;
  g->program = g->api.clCreateProgramWithSource(g->context, 2, texts, NULL, &code);
  if (!succeeded(g, "clCreateProgramWithSource", code)) return false;
  code = g->api.clBuildProgram(g->program, 1, &g->device, options, NULL, NULL);
  if (code == CL_BUILD_PROGRAM_FAILURE) {
    char log[GPU_TEXT / 2] = "";
    g->api.clGetProgramBuildInfo(g->program, g->device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    fail(g->gpu.problem, "OpenCL: the kernel of the wave cannot be compiled: %s", log);
    return false;
  }
  size_t most = (size_t)read_number_of_device(g, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  g->group[0] = most && most < GROUP_WIDTH ? most : GROUP_WIDTH;
  g->group[1] = most >= GROUP_WIDTH * GROUP_HEIGHT ? GROUP_HEIGHT : 1;
  return succeeded(g, "clBuildProgram", code);
}

static bool begin_wave(State *s, const double *initial)
{
  OpenClGpu *g = gpu_of(s);
  int32_t code = 0;
  if (!build_wave(g) || !create_matrix(s, initial, &s->old)) return false;
  if (!create_staged(g, count_input_bytes(&s->task), &s->out)) return false;
  s->kernel = g->api.clCreateKernel(g->program, "wave_step", &code);
  return succeeded(g, "clCreateKernel", code);
}

static bool prepare(GpuTask *task, const double *initial)
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  if (!task->wave && !g->dgemm) {
    fail(g->gpu.problem, "OpenCL: wanted CLBlast for the product of matrices: %.300s", g->blas_problem);
    return false;
  }
  if (!create_context(g) || !create_matrix(s, initial, &s->cells)) return false;
  for (int slot = 0; slot < GPU_SLOTS; slot++) {
    if (!create_staged(g, count_input_bytes(task), &s->in[slot])) return false;
    task->input[slot] = s->in[slot].mapped;
  }
  if (task->wave && !begin_wave(s, initial)) return false;
  return succeeded(g, "clFinish", g->api.clFinish(g->compute_queue));
}

static bool copy_input(GpuTask *task, int slot)
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  const Staged *in = &s->in[slot];
  forget_event(g, &s->loaded);
  int32_t code = g->api.clEnqueueWriteBuffer(g->transfer_queue, in->device, 0, 0, in->bytes, in->mapped, 0, NULL, &s->loaded);
  return succeeded(g, "clEnqueueWriteBuffer", code) && succeeded(g, "clFlush", g->api.clFlush(g->transfer_queue));
}

static bool enqueue_product(State *s)
{
  OpenClGpu *g = gpu_of(s);
  const GpuTask *t = &s->task;
  ClObject in = s->in[t->computing].device;
  int code = g->dgemm(CLBLAST_ROW_MAJOR, CLBLAST_NO_TRANSPOSE, CLBLAST_NO_TRANSPOSE, t->rows, t->columns, t->block, 1, in, 0,
                      t->block, in, t->rows * t->block, t->columns, 1, s->cells, 0, t->columns, &g->compute_queue, NULL);
  if (code == 0) return true;
  fail(g->gpu.problem, "CLBlast: dgemm failed with code %d: %s", code, code < 0 ? describe_code(code) : "see clblast.h");
  return false;
}

static bool enqueue_step(State *s)
{
  OpenClGpu *g = gpu_of(s);
  const uint64_t rows = s->task.rows, columns = s->task.columns;
  const void *const values[] = {&s->old, &s->cells, &s->in[s->task.computing].device, &s->out.device, &rows, &columns};
  const size_t group[] = {g->group[0], g->group[1]};
  const size_t global[] = {(columns + group[0] - 1) / group[0] * group[0], (rows + group[1] - 1) / group[1] * group[1]};
  for (uint32_t k = 0; k < 6; k++)
    if (!succeeded(g, "clSetKernelArg", g->api.clSetKernelArg(s->kernel, k, 8, values[k]))) return false;
  int32_t code = g->api.clEnqueueNDRangeKernel(g->compute_queue, s->kernel, 2, NULL, global, group, 0, NULL, NULL);
  if (!succeeded(g, "clEnqueueNDRangeKernel", code)) return false;
  code = g->api.clEnqueueReadBuffer(g->compute_queue, s->out.device, 0, 0, s->out.bytes, s->out.mapped, 0, NULL, NULL);
  ClObject next = s->old;
  s->old = s->cells;
  s->cells = next;
  return succeeded(g, "clEnqueueReadBuffer", code);
}

static int start(GpuTask *task)
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  int32_t code = g->api.clEnqueueBarrierWithWaitList(g->compute_queue, 1, &s->loaded, NULL);
  if (!succeeded(g, "clEnqueueBarrierWithWaitList", code)) return -1;
  if (!(task->wave ? enqueue_step(s) : enqueue_product(s))) return -1;
  forget_event(g, &s->computed);
  code = g->api.clEnqueueMarkerWithWaitList(g->compute_queue, 0, NULL, &s->computed);
  if (!succeeded(g, "clEnqueueMarkerWithWaitList", code)) return -1;
  return succeeded(g, "clFlush", g->api.clFlush(g->compute_queue)) ? 0 : -1;
}

static int finished(GpuTask *task, bool wait, double *const out[4])
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  int32_t status = CL_COMPLETE;
  if (wait && !succeeded(g, "clWaitForEvents", g->api.clWaitForEvents(1, &s->computed))) return -1;
  int32_t code = g->api.clGetEventInfo(s->computed, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (!succeeded(g, "clGetEventInfo", code) || !succeeded(g, "a command", status)) return -1;
  if (status != CL_COMPLETE) return 0;
  if (task->wave) unpack_edges(task, s->out.mapped, out);
  return 1;
}

static int end(GpuTask *task, double *result)
{
  State *s = (State *)task;
  OpenClGpu *g = gpu_of(s);
  int32_t code = g->api.clEnqueueReadBuffer(g->compute_queue, s->cells, 1, 0, count_bytes(s), result, 0, NULL, NULL);
  bool good = succeeded(g, "clEnqueueReadBuffer", code);
  free_task(task);
  return good ? 0 : -1;
}

GpuCode open_opencl_gpu(int number, bool only_gpus, Gpu **gpu, char *problem)
{
  static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so"};
  OpenClGpu *g = calloc(1, sizeof *g);
  if (!g) return fail(problem, "the memory of the host is full"), GPU_FAILED;
  g->gpu = (Gpu){.task_bytes = sizeof(State), .prepare = prepare, .copy_input = copy_input, .free_task = free_task,
                 .start = start, .finished = finished, .end = end, .describe_libraries = describe_libraries,
                 .close = close_gpu};
  GpuCode code = GPU_ABSENT;
  g->library = open_library(names, sizeof names / sizeof *names, problem);
  if (g->library && find_functions(g->library, functions, sizeof functions / sizeof *functions, &g->api, problem)) {
    open_blas(g);
    code = choose_device(g, number, only_gpus, problem);
  }
  if (code == GPU_OPEN) {
    *gpu = &g->gpu;
    return code;
  }
  free(g);
  return code;
}
