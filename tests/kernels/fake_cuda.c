/* fake_cuda.c: libcuda, libcublas and libnvrtc of FAKE_DEVICES devices that are this processor.
 *
 * It is as lazy as a device may be: work of a stream is done only when somebody waits for it. So a program that forgets to
 * wait, or changes memory too early, has a wrong result. An address of the device is no address of the host. Each call is
 * a line of the file FAKE_LOG. FAKE_FAILS=NAME:N lets the call number N of a function fail with code 2. */
#include "cuda_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OUT_OF_MEMORY = 2, MAX_WORK = 4096 };
static const CudaAddress shift = (CudaAddress)1 << 60;

typedef struct Event Event;
typedef struct {
  enum { TO_DEVICE, TO_HOST, CLEAR, PRODUCT, STEP, RECORD, WAIT } kind;
  void *to;
  const void *from, *second;
  size_t bytes, rows, columns, block;
  double *in, *out;
  Event *event;
  int turn;
} Work;
typedef struct {
  Work work[MAX_WORK];
  int done, count;
} Stream;
struct Event {
  Stream *stream;
  int recorded, reached; /* turns */
};
static Stream *blas_stream;
static int failing_calls;

static void *on_host(CudaAddress address)
{
  if (address < shift) abort();
  return (void *)(uintptr_t)(address - shift);
}

/* Returns the code of a call. */
static int call(const char *name)
{
  const char *log = getenv("FAKE_LOG"), *fails = getenv("FAKE_FAILS");
  FILE *file = log ? fopen(log, "a") : NULL;
  if (file) {
    fprintf(file, "%s\n", name);
    fclose(file);
  }
  const char *colon = fails ? strchr(fails, ':') : NULL;
  if (!colon || strlen(name) != (size_t)(colon - fails) || strncmp(name, fails, strlen(name)) != 0) return 0;
  return ++failing_calls == atoi(colon + 1) ? OUT_OF_MEMORY : 0;
}

static void add_product(const Work *w)
{
  const double *a = w->from, *b = w->second;
  double *c = w->to;
  for (size_t i = 0; i < w->rows; i++)
    for (size_t j = 0; j < w->columns; j++)
      for (size_t p = 0; p < w->block; p++) c[i * w->columns + j] += a[i * w->block + p] * b[p * w->columns + j];
}

static void step(const Work *w)
{
  double *old = w->to;
  const double *now = w->from;
  size_t rows = w->rows, columns = w->columns;
  const double *north = w->in, *south = north + columns, *west = south + columns, *east = west + rows;
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      size_t at = i * columns + j;
      double above = i ? now[at - columns] : north[j], below = i + 1 < rows ? now[at + columns] : south[j];
      double left = j ? now[at - 1] : west[i], right = j + 1 < columns ? now[at + 1] : east[i];
      old[at] = now[at] - old[at] + 0.25 * above + 0.25 * below + 0.25 * left + 0.25 * right;
      if (i == 0) w->out[j] = old[at];
      if (i + 1 == rows) w->out[columns + j] = old[at];
      if (j == 0) w->out[2 * columns + i] = old[at];
      if (j + 1 == columns) w->out[2 * columns + rows + i] = old[at];
    }
}

static void wait_for(Event *event, int turn);

static void do_next(Stream *stream)
{
  const Work *w = &stream->work[stream->done++];
  switch (w->kind) {
  case TO_DEVICE:
  case TO_HOST: memcpy(w->to, w->from, w->bytes); break;
  case CLEAR: memset(w->to, 0, w->bytes); break;
  case PRODUCT: add_product(w); break;
  case STEP: step(w); break;
  case RECORD: w->event->reached = w->turn; break;
  case WAIT: wait_for(w->event, w->turn);
  }
}

static void wait_for(Event *event, int turn)
{
  while (event->reached < turn) do_next(event->stream);
}

static int enqueue(const char *name, Stream *stream, Work work)
{
  int code = call(name);
  if (code) return code;
  if (stream->count == MAX_WORK) abort();
  stream->work[stream->count++] = work;
  return 0;
}

int cuInit(unsigned flags) { return (void)flags, call("cuInit") ? 999 : getenv("FAKE_DEVICES") ? 0 : CUDA_ERROR_NO_DEVICE; }
int cuDriverGetVersion(int *version) { return *version = 12040, 0; }
int cuDeviceGetCount(int *count) { return *count = atoi(getenv("FAKE_DEVICES")), call("cuDeviceGetCount"); }
int cuDeviceGet(int *device, int number) { return *device = number, call("cuDeviceGet"); }
int cuDeviceGetName(char *name, int room, int device) { return snprintf(name, (size_t)room, "Fake %d", device), 0; }
int cuDeviceGetAttribute(int *value, int what, int device)
{
  (void)device;
  *value = what == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
  return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return (void)device, *bytes = (size_t)80 << 30, 0; }
int cuDeviceGetPCIBusId(char *text, int room, int device) { return snprintf(text, (size_t)room, "0000:A%d:00.0", device), 0; }
int cuDevicePrimaryCtxRetain(CudaObject *context, int device) { return (void)device, *context = &failing_calls, call("cuDevicePrimaryCtxRetain"); }
int cuCtxSetCurrent(CudaObject context) { return (void)context, call("cuCtxSetCurrent"); }

int cuStreamCreate(CudaObject *stream, unsigned flags)
{
  (void)flags;
  int code = call("cuStreamCreate");
  if (!code) *stream = calloc(1, sizeof(Stream));
  return code;
}
int cuStreamDestroy_v2(CudaObject stream) { return free(stream), call("cuStreamDestroy"); }
int cuStreamSynchronize(CudaObject stream)
{
  Stream *s = stream;
  while (s->done < s->count) do_next(s);
  return call("cuStreamSynchronize");
}
int cuStreamWaitEvent(CudaObject stream, CudaObject event, unsigned flags)
{
  Event *e = event;
  (void)flags;
  return enqueue("cuStreamWaitEvent", stream, (Work){.kind = WAIT, .event = e, .turn = e->recorded});
}
int cuEventCreate(CudaObject *event, unsigned flags)
{
  (void)flags;
  *event = calloc(1, sizeof(Event));
  return call("cuEventCreate");
}
int cuEventDestroy_v2(CudaObject event) { return free(event), call("cuEventDestroy"); }
int cuEventRecord(CudaObject event, CudaObject stream)
{
  Event *e = event;
  e->stream = stream;
  return enqueue("cuEventRecord", stream, (Work){.kind = RECORD, .event = e, .turn = ++e->recorded});
}
int cuEventQuery(CudaObject event)
{
  Event *e = event;
  if (e->reached == e->recorded) return call("cuEventQuery");
  do_next(e->stream);
  return CUDA_ERROR_NOT_READY;
}
int cuEventSynchronize(CudaObject event)
{
  Event *e = event;
  wait_for(e, e->recorded);
  return call("cuEventSynchronize");
}

int cuMemAlloc_v2(CudaAddress *address, size_t bytes)
{
  const char *most = getenv("FAKE_MEMORY"); /* bytes of one piece */
  int code = most && bytes > (size_t)atoll(most) ? OUT_OF_MEMORY : call("cuMemAlloc");
  if (!code) *address = (uintptr_t)malloc(bytes) + shift;
  return code;
}
int cuMemFree_v2(CudaAddress address) { return free(on_host(address)), call("cuMemFree"); }
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
  (void)flags;
  int code = call("cuMemHostAlloc");
  if (!code) *memory = malloc(bytes);
  return code;
}
int cuMemFreeHost(void *memory) { return free(memory), call("cuMemFreeHost"); }
int cuMemsetD8Async(CudaAddress to, unsigned char value, size_t bytes, CudaObject stream)
{
  if (value) abort();
  return enqueue("cuMemsetD8Async", stream, (Work){.kind = CLEAR, .to = on_host(to), .bytes = bytes});
}
int cuMemcpyHtoDAsync_v2(CudaAddress to, const void *from, size_t bytes, CudaObject stream)
{
  return enqueue("cuMemcpyHtoDAsync", stream, (Work){.kind = TO_DEVICE, .to = on_host(to), .from = from, .bytes = bytes});
}
int cuMemcpyDtoHAsync_v2(void *to, CudaAddress from, size_t bytes, CudaObject stream)
{
  return enqueue("cuMemcpyDtoHAsync", stream, (Work){.kind = TO_HOST, .to = to, .from = on_host(from), .bytes = bytes});
}

int cuModuleLoadData(CudaObject *module, const void *binary)
{
  *module = &failing_calls;
  return strcmp(binary, "compiled for --gpu-architecture=sm_90") == 0 ? call("cuModuleLoadData") : 300;
}
int cuModuleUnload(CudaObject module) { return (void)module, call("cuModuleUnload"); }
int cuModuleGetFunction(CudaObject *function, CudaObject module, const char *name)
{
  (void)module;
  *function = &failing_calls;
  return strcmp(name, "wave_step") == 0 ? call("cuModuleGetFunction") : 500;
}
int cuLaunchKernel(CudaObject function, unsigned across, unsigned down, unsigned z, unsigned width, unsigned height, unsigned depth,
                   unsigned shared, CudaObject stream, void **values, void **extra)
{
  (void)function, (void)z, (void)depth, (void)shared, (void)extra;
  CudaAddress memory[4];
  size_t rows = *(unsigned long *)values[4], columns = *(unsigned long *)values[5];
  for (int k = 0; k < 4; k++) memory[k] = *(CudaAddress *)values[k];
  if ((size_t)across * width < columns || (size_t)down * height < rows) abort();
  return enqueue("cuLaunchKernel", stream, (Work){.kind = STEP, .to = on_host(memory[0]), .from = on_host(memory[1]),
                 .in = on_host(memory[2]), .out = on_host(memory[3]), .rows = rows, .columns = columns});
}
int cuGetErrorString(int code, const char **text) { return *text = code == OUT_OF_MEMORY ? "out of memory" : "fake error", 0; }

int cublasCreate_v2(CudaObject *handle) { return *handle = &failing_calls, call("cublasCreate"); }
int cublasDestroy_v2(CudaObject handle) { return (void)handle, call("cublasDestroy"); }
int cublasGetProperty(int part, int *value) { return *value = 12 - part, 0; }
int cublasSetStream_v2(CudaObject handle, CudaObject stream) { return (void)handle, blas_stream = stream, call("cublasSetStream"); }
/* C' += B' A' by columns is C += A B by rows. */
int cublasDgemm_v2(CudaObject handle, int first, int second, int m, int n, int k, const double *alpha, CudaAddress a, int lda,
                   CudaAddress b, int ldb, const double *beta, CudaAddress c, int ldc)
{
  (void)handle;
  if (first || second || *alpha != 1 || *beta != 1 || lda != m || ldb != k || ldc != m) abort();
  return enqueue("cublasDgemm", blas_stream, (Work){.kind = PRODUCT, .to = on_host(c), .from = on_host(b), .second = on_host(a),
                 .rows = (size_t)n, .columns = (size_t)m, .block = (size_t)k});
}

static char compiled[64];
int nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 4, 0; }
int nvrtcCreateProgram(CudaObject *program, const char *source, const char *name, int headers, const char *const *texts,
                       const char *const *names)
{
  (void)name, (void)headers, (void)texts, (void)names;
  *program = compiled;
  return strstr(source, "wave_step") ? call("nvrtcCreateProgram") : 1;
}
int nvrtcCompileProgram(CudaObject program, int count, const char *const *options)
{
  (void)program, (void)count;
  snprintf(compiled, sizeof compiled, "compiled for %s", options[0]);
  return call("nvrtcCompileProgram");
}
int nvrtcGetCUBINSize(CudaObject program, size_t *bytes) { return (void)program, *bytes = strlen(compiled) + 1, 0; }
int nvrtcGetCUBIN(CudaObject program, char *binary) { return strcpy(binary, program), 0; }
int nvrtcGetProgramLogSize(CudaObject program, size_t *bytes) { return (void)program, *bytes = 9, 0; }
int nvrtcGetProgramLog(CudaObject program, char *log) { return (void)program, strcpy(log, "line 1\n?"), 0; }
int nvrtcDestroyProgram(CudaObject *program) { return *program = NULL, 0; }
const char *nvrtcGetErrorString(int code) { return code == OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY" : "?"; }
