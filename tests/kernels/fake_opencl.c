/* fake_opencl.c: a libOpenCL with PLATFORMS platforms of DEVICES devices of DOUBLES as their configuration of double
 * precision. Device k of platform p has the handle HANDLE(p, k), on the PCI bus the number BUS(p, k) and in its UUID
 * UUID(p, k), if these are not negative. No context can be created on them. */
#include "opencl_api.h"

#include <string.h>

#ifndef PLATFORMS
#define PLATFORMS 1
#endif
#ifndef TYPE
#define TYPE CL_DEVICE_TYPE_GPU
#endif
#ifndef HANDLE
#define HANDLE(p, k) ((p) * DEVICES + (k))
#endif
#ifndef BUS
#define BUS(p, k) (-1)
#endif
#ifndef UUID
#define UUID(p, k) (-1)
#endif
static struct { int platform, number; } of_handle[64];

int32_t clGetPlatformIDs(uint32_t room, ClObject *platforms, uint32_t *count)
{
  (void)room;
  for (intptr_t p = 0; p < PLATFORMS; p++) platforms[p] = (ClObject)(p + 1);
  *count = PLATFORMS;
  return 0;
}

int32_t clGetDeviceIDs(ClObject platform, uint64_t type, uint32_t room, ClObject *devices, uint32_t *count)
{
  const int p = (int)(intptr_t)platform - 1;
  (void)room;
  if (!DEVICES || !(type & TYPE)) return CL_DEVICE_NOT_FOUND;
  for (int k = 0; k < DEVICES; k++) {
    const int handle = HANDLE(p, k);
    devices[k] = &of_handle[handle];
    of_handle[handle].platform = p;
    of_handle[handle].number = k;
  }
  *count = DEVICES;
  return 0;
}

int32_t clGetDeviceInfo(ClObject device, uint32_t what, size_t room, void *value, size_t *bytes)
{
  const uint64_t memory = (uint64_t)2 << 30, type = TYPE, doubles = DOUBLES;
  const ptrdiff_t handle = device ? (char *)device - (char *)of_handle : 0;
  const int p = of_handle[handle / (ptrdiff_t)sizeof *of_handle].platform;
  const int k = of_handle[handle / (ptrdiff_t)sizeof *of_handle].number;
  const int32_t bus = BUS(p, k), uuid = UUID(p, k);
  (void)bytes, (void)p, (void)k;
  switch (what) {
  case CL_DEVICE_NAME: strncpy(value, "Plain", room); return 0;
  case CL_DRIVER_VERSION: strncpy(value, "7", room); return 0;
  case CL_DEVICE_VERSION: strncpy(value, "OpenCL 1.2", room); return 0;
  case CL_DEVICE_TYPE: memcpy(value, &type, 8); return 0;
  case CL_DEVICE_GLOBAL_MEM_SIZE: memcpy(value, &memory, 8); return 0;
  case CL_DEVICE_DOUBLE_FP_CONFIG: memcpy(value, &doubles, 8); return 0;
  case CL_DEVICE_PCI_BUS_INFO_KHR:
    if (bus < 0) return -30;
    memset(value, 0, room);
    memcpy((char *)value + 4, &bus, 4);
    return 0;
  case CL_DEVICE_UUID_KHR:
    if (uuid < 0) return -30;
    memset(value, 0, room);
    memcpy(value, &uuid, 4);
    return 0;
  default: return -30;
  }
}

ClObject clCreateContext(const intptr_t *properties, uint32_t count, const ClObject *devices, void *notify, void *data, int32_t *code)
{
  (void)properties, (void)count, (void)devices, (void)notify, (void)data;
  *code = -5;
  return NULL;
}

#define UNUSED(name) int32_t name(void) { return -30; }
UNUSED(clCreateCommandQueue)
UNUSED(clCreateBuffer)
UNUSED(clCreateProgramWithSource)
UNUSED(clBuildProgram)
UNUSED(clGetProgramBuildInfo)
UNUSED(clCreateKernel)
UNUSED(clSetKernelArg)
UNUSED(clEnqueueNDRangeKernel)
UNUSED(clEnqueueWriteBuffer)
UNUSED(clEnqueueReadBuffer)
UNUSED(clEnqueueFillBuffer)
UNUSED(clEnqueueMapBuffer)
UNUSED(clEnqueueUnmapMemObject)
UNUSED(clEnqueueMarkerWithWaitList)
UNUSED(clEnqueueBarrierWithWaitList)
UNUSED(clFlush)
UNUSED(clFinish)
UNUSED(clWaitForEvents)
UNUSED(clGetEventInfo)
UNUSED(clReleaseEvent)
UNUSED(clReleaseMemObject)
UNUSED(clReleaseKernel)
UNUSED(clReleaseProgram)
UNUSED(clReleaseCommandQueue)
UNUSED(clReleaseContext)
