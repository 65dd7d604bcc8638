/* fake_opencl.c: a libOpenCL with DEVICES devices of DOUBLES as their configuration of double precision. No context can be
 * created on them. */
#include "opencl_api.h"

#include <string.h>

int32_t clGetPlatformIDs(uint32_t room, ClObject *platforms, uint32_t *count)
{
  (void)room;
  platforms[0] = &"platform";
  *count = 1;
  return 0;
}

int32_t clGetDeviceIDs(ClObject platform, uint64_t type, uint32_t room, ClObject *devices, uint32_t *count)
{
  (void)platform, (void)type, (void)room;
  for (int k = 0; k < DEVICES; k++) devices[k] = &"device";
  *count = DEVICES;
  return DEVICES ? 0 : CL_DEVICE_NOT_FOUND;
}

int32_t clGetDeviceInfo(ClObject device, uint32_t what, size_t room, void *value, size_t *bytes)
{
  const uint64_t memory = (uint64_t)2 << 30, type = CL_DEVICE_TYPE_GPU, doubles = DOUBLES;
  (void)device, (void)bytes;
  switch (what) {
  case CL_DEVICE_NAME: strncpy(value, "Plain", room); return 0;
  case CL_DRIVER_VERSION: strncpy(value, "7", room); return 0;
  case CL_DEVICE_VERSION: strncpy(value, "OpenCL 1.2", room); return 0;
  case CL_DEVICE_TYPE: memcpy(value, &type, 8); return 0;
  case CL_DEVICE_GLOBAL_MEM_SIZE: memcpy(value, &memory, 8); return 0;
  case CL_DEVICE_DOUBLE_FP_CONFIG: memcpy(value, &doubles, 8); return 0;
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
