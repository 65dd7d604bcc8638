/* opencl_api.h: the functions of OpenCL 1.2 and CLBlast that opencl.c calls, so that building needs no headers of them.
 * Numbers are those of Khronos' cl.h and of clblast_c.h. */
#ifndef COMMODEL_OPENCL_API_H
#define COMMODEL_OPENCL_API_H
#include <stddef.h>
#include <stdint.h>

typedef void *ClObject; /* platform, device, context, queue, buffer, program, kernel, event */

enum {
  CL_DEVICE_NOT_FOUND = -1,
  CL_BUILD_PROGRAM_FAILURE = -11,
  CL_COMPLETE = 0,
  CL_DEVICE_TYPE = 0x1000,
  CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
  CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
  CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
  CL_DEVICE_NAME = 0x102b,
  CL_DRIVER_VERSION = 0x102d,
  CL_DEVICE_VERSION = 0x102f,
  CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
  CL_DEVICE_UUID_KHR = 0x106a,
  CL_DEVICE_PCI_BUS_INFO_KHR = 0x410f,
  CL_PROGRAM_BUILD_LOG = 0x1183,
  CL_EVENT_COMMAND_EXECUTION_STATUS = 0x11d3,
  CL_MAP_READ = 1,
  CL_MAP_WRITE = 2,
};
static const uint64_t CL_DEVICE_TYPE_CPU = 2, CL_DEVICE_TYPE_GPU = 4, CL_DEVICE_TYPE_ALL = 0xffffffff, CL_MEM_READ_WRITE = 1, CL_MEM_ALLOC_HOST_PTR = 16;

enum { CLBLAST_ROW_MAJOR = 101, CLBLAST_NO_TRANSPOSE = 111 };

typedef struct {
  int32_t (*clGetPlatformIDs)(uint32_t, ClObject *, uint32_t *);
  int32_t (*clGetDeviceIDs)(ClObject, uint64_t, uint32_t, ClObject *, uint32_t *);
  int32_t (*clGetDeviceInfo)(ClObject, uint32_t, size_t, void *, size_t *);
  ClObject (*clCreateContext)(const intptr_t *, uint32_t, const ClObject *, void *, void *, int32_t *);
  ClObject (*clCreateCommandQueue)(ClObject, ClObject, uint64_t, int32_t *);
  ClObject (*clCreateBuffer)(ClObject, uint64_t, size_t, void *, int32_t *);
  ClObject (*clCreateProgramWithSource)(ClObject, uint32_t, const char **, const size_t *, int32_t *);
  int32_t (*clBuildProgram)(ClObject, uint32_t, const ClObject *, const char *, void *, void *);
  int32_t (*clGetProgramBuildInfo)(ClObject, ClObject, uint32_t, size_t, void *, size_t *);
  ClObject (*clCreateKernel)(ClObject, const char *, int32_t *);
  int32_t (*clSetKernelArg)(ClObject, uint32_t, size_t, const void *);
  int32_t (*clEnqueueNDRangeKernel)(ClObject, ClObject, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t,
                                    const ClObject *, ClObject *);
  int32_t (*clEnqueueWriteBuffer)(ClObject, ClObject, uint32_t, size_t, size_t, const void *, uint32_t, const ClObject *, ClObject *);
  int32_t (*clEnqueueReadBuffer)(ClObject, ClObject, uint32_t, size_t, size_t, void *, uint32_t, const ClObject *, ClObject *);
  int32_t (*clEnqueueFillBuffer)(ClObject, ClObject, const void *, size_t, size_t, size_t, uint32_t, const ClObject *, ClObject *);
  void *(*clEnqueueMapBuffer)(ClObject, ClObject, uint32_t, uint64_t, size_t, size_t, uint32_t, const ClObject *, ClObject *, int32_t *);
  int32_t (*clEnqueueUnmapMemObject)(ClObject, ClObject, void *, uint32_t, const ClObject *, ClObject *);
  int32_t (*clEnqueueMarkerWithWaitList)(ClObject, uint32_t, const ClObject *, ClObject *);
  int32_t (*clEnqueueBarrierWithWaitList)(ClObject, uint32_t, const ClObject *, ClObject *);
  int32_t (*clFlush)(ClObject);
  int32_t (*clFinish)(ClObject);
  int32_t (*clWaitForEvents)(uint32_t, const ClObject *);
  int32_t (*clGetEventInfo)(ClObject, uint32_t, size_t, void *, size_t *);
  int32_t (*clReleaseEvent)(ClObject);
  int32_t (*clReleaseMemObject)(ClObject);
  int32_t (*clReleaseKernel)(ClObject);
  int32_t (*clReleaseProgram)(ClObject);
  int32_t (*clReleaseCommandQueue)(ClObject);
  int32_t (*clReleaseContext)(ClObject);
} OpenClApi;

typedef int ClblastDgemm(int layout, int transpose_a, int transpose_b, size_t m, size_t n, size_t k, double alpha, ClObject a,
                         size_t a_offset, size_t a_stride, ClObject b, size_t b_offset, size_t b_stride, double beta, ClObject c,
                         size_t c_offset, size_t c_stride, ClObject *queue, ClObject *event);

#endif
