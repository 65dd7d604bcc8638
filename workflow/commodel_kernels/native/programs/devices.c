/* devices: lists the GPUs of this machine for `commodel doctor`, a line for each: `cuda 0: NVIDIA H200, …`.
 *
 * OpenCL's processors are among them, as pocl's; a process takes them only if COMMODEL_ACCELERATOR is opencl. Without a
 * device, the line says why: `cuda: …`.
 */
#include "gpu.h"

#include <stdio.h>

enum { MOST = 64 }; /* devices of one kind */

static GpuCode open_gpu(bool cuda, int number, Gpu **gpu, char *problem)
{
  return cuda ? open_cuda_gpu(number, gpu, problem) : open_opencl_gpu(number, false, gpu, problem);
}

static void list_devices(const char *kind, bool cuda)
{
  char problem[GPU_TEXT] = "";
  for (int number = 0; number < MOST; number++) {
    Gpu *gpu = NULL;
    GpuCode code = open_gpu(cuda, number, &gpu, problem);
    if (code == GPU_OPEN) {
      char libraries[GPU_TEXT];
      gpu->describe_libraries(gpu, libraries);
      printf("%s %d: %s, %s\n", kind, number, gpu->description, libraries);
      gpu->close(gpu);
      continue;
    }
    if (code == GPU_FAILED || number == 0) printf("%s: %s\n", kind, problem);
    if (code == GPU_ABSENT) return;
  }
}

int main(void)
{
  list_devices("cuda", true);
  list_devices("opencl", false);
  return 0;
}
