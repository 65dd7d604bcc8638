/* gpu.h: GPUs that the programs drive themselves, by OpenCL (opencl.c) or CUDA (cuda.c).
 *
 * The libraries of both are opened when a program runs, so that building needs none of them. Matrices are stored row by
 * row, in doubles. A rank's rectangle is a task, which stays on the device from `begin_gpu_task` to `end`. One iteration is
 *
 *   load_gpu_input  begins to copy the input to the device, and returns. The input is copied through page-locked memory, so
 *                   that it may change afterwards. It may be called while the previous iteration is computed.
 *                       gemm  in[0] is a column of rows x block, in[1] a row of block x columns
 *                       wave  in[0..3] are the adjacent cells, north, east, south and west of the rectangle
 *   start           begins to compute with the loaded input, and returns: C += in[0] * in[1], or one step as in stencil.c
 *   finished        whether the iteration is computed. If `wait`, it waits for that. Then the rectangle's own edges of a
 *                   wave are in out[0..3], in the order above.
 *
 * These three, and `end`, return a number below 0 if they fail. Then `problem` says why, in one line.
 */
#ifndef COMMODEL_GPU_H
#define COMMODEL_GPU_H
#include <stdbool.h>
#include <stddef.h>

/* The input of iteration k lies in slot k % 2. So the input of the next iteration is copied while this one is computed. */
enum { GPU_TEXT = 400, GPU_ADDRESS = 32, GPU_SLOTS = 2 };
typedef struct Gpu Gpu;

/* A rectangle on a GPU. opencl.c and cuda.c have further members behind these. */
typedef struct {
  Gpu *gpu;
  bool wave; /* else gemm */
  size_t rows, columns, block;
  char *input[GPU_SLOTS]; /* page-locked memory of the host */
  int loading, computing; /* slots */
} GpuTask;

struct Gpu {
  char description[GPU_TEXT]; /* name, memory, driver and version */
  char address[GPU_ADDRESS];  /* on the PCI bus, such as 0000:3b:00.0; empty: unknown */
  char problem[GPU_TEXT];     /* of the last call that failed */
  size_t task_bytes;          /* of a task with its further members */
  bool (*prepare)(GpuTask *task, const double *initial); /* allocates `input` and all else; NULL: zeros */
  bool (*copy_input)(GpuTask *task, int slot);           /* begins to copy it to the device */
  void (*free_task)(GpuTask *task);                      /* also one that is prepared in part */
  int (*start)(GpuTask *task);
  int (*finished)(GpuTask *task, bool wait, double *const out[4]);
  int (*end)(GpuTask *task, double *result); /* writes the rectangle to `result`, and frees everything */
  void (*describe_libraries)(Gpu *gpu, char *text); /* their versions, or which are missing, in GPU_TEXT bytes */
  void (*close)(Gpu *gpu);
};

/* Why a GPU cannot be opened. */
typedef enum { GPU_OPEN, GPU_ABSENT, GPU_TOO_FEW, GPU_FAILED } GpuCode; /* absent: no driver, or no device */

/* Opens the device with a number, among those that this process sees. If it is not open, `problem` of GPU_TEXT bytes
 * says why. OpenCL without `only_gpus` also takes processors, if there is no GPU. */
GpuCode open_opencl_gpu(int number, bool only_gpus, Gpu **gpu, char *problem);

GpuCode open_cuda_gpu(int number, Gpu **gpu, char *problem);
/* Compiles the kernel of the wave for a compute capability. Returns the binary, or NULL and the problem. free() it */
char *compile_cuda_wave(int major, int minor, size_t *bytes, char *problem);

/* ---- gpu.c: what both have in common ---- */
GpuTask *begin_gpu_task(Gpu *gpu, const char *kernel, size_t rows, size_t columns, size_t block, const double *initial);
int load_gpu_input(GpuTask *task, const double *const in[4]);
/* An input is one piece of memory: the column and the row of gemm; or adjacent cells, north, south, west, east. So are the
 * edges of a wave. */
size_t count_input_bytes(const GpuTask *task);
void unpack_edges(const GpuTask *task, const char *from, double *const out[4]);

/* Functions of libraries that are opened when a program runs. */
typedef struct {
  const char *name;
  size_t offset; /* of its pointer in a structure */
} LibraryFunction;
void *open_library(const char *const names[], size_t count, char *problem);
bool find_function(void *library, const char *name, void *function); /* a pointer to a pointer to it */
bool find_functions(void *library, const LibraryFunction functions[], size_t count, void *structure, char *problem);
int fail(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3))); /* returns -1 */
GpuCode refuse_number(char *problem, const char *kind, const char *driver, int count, int number); /* of a device */

#endif
