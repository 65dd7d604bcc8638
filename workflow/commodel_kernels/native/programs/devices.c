/* devices: lists the GPUs of this machine for `commodel doctor`, a line for each: `cuda 0: NVIDIA H200, …`.
 *
 * OpenCL's processors are among them, as pocl's; a process takes them only if COMMODEL_ACCELERATOR is opencl. Without a
 * device, the line says why: `cuda: …`. OpenCL's device of a card that CUDA lists is `opencl 0: …, the card of cuda 0`.
 */
#include "gpu.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64 }; /* devices of one kind */

static GpuCode open_gpu(bool cuda, int number, Gpu **gpu, char *problem)
{
  return cuda ? open_cuda_gpu(number, gpu, problem) : open_opencl_gpu(number, false, gpu, problem);
}

/* `addresses` on the PCI bus: CUDA writes its own, with which OpenCL's are compared. */
static void list_devices(const char *kind, bool cuda, char addresses[MOST][GPU_ADDRESS])
{
  char problem[GPU_TEXT] = "";
  for (int number = 0; number < MOST; number++) {
    Gpu *gpu = NULL;
    GpuCode code = open_gpu(cuda, number, &gpu, problem);
    if (code == GPU_OPEN) {
      char libraries[GPU_TEXT];
      gpu->describe_libraries(gpu, libraries);
      printf("%s %d: %s, %s", kind, number, gpu->description, libraries);
      if (cuda) memcpy(addresses[number], gpu->address, GPU_ADDRESS);
      for (int k = 0; !cuda && *gpu->address && k < MOST; k++)
        if (strcmp(addresses[k], gpu->address) == 0) printf(", the card of cuda %d", k);
      printf("\n");
      gpu->close(gpu);
      continue;
    }
    if (code == GPU_FAILED || number == 0) printf("%s: %s\n", kind, problem);
    if (code != GPU_FAILED) return;
  }
}

int main(void)
{
  char addresses[MOST][GPU_ADDRESS] = {{0}};
  list_devices("cuda", true, addresses);
  list_devices("opencl", false, addresses);
  return 0;
}
