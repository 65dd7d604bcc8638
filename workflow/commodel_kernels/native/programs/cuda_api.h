/* cuda_api.h: the functions of CUDA's driver, cuBLAS and NVRTC that cuda.c calls, so that building needs no headers of
 * them. Numbers are those of NVIDIA's cuda.h and cublas_api.h. */
#ifndef COMMODEL_CUDA_API_H
#define COMMODEL_CUDA_API_H
#include <stddef.h>
#include <stdint.h>

typedef void *CudaObject; /* context, stream, event, module, function, handle of cuBLAS, program of NVRTC */
typedef uint64_t CudaAddress;

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NOT_READY = 600,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_STREAM_NON_BLOCKING = 1,
  CU_EVENT_DISABLE_TIMING = 2,
  CUBLAS_NO_TRANSPOSE = 0,
};

typedef struct {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int *);
  int (*cuDeviceGetCount)(int *);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetName)(char *, int, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDeviceTotalMem_v2)(size_t *, int);
  int (*cuDeviceGetPCIBusId)(char *, int, int);
  int (*cuDevicePrimaryCtxRetain)(CudaObject *, int);
  int (*cuCtxSetCurrent)(CudaObject);
  int (*cuStreamCreate)(CudaObject *, unsigned);
  int (*cuStreamDestroy_v2)(CudaObject);
  int (*cuStreamWaitEvent)(CudaObject, CudaObject, unsigned);
  int (*cuStreamSynchronize)(CudaObject);
  int (*cuEventCreate)(CudaObject *, unsigned);
  int (*cuEventDestroy_v2)(CudaObject);
  int (*cuEventRecord)(CudaObject, CudaObject);
  int (*cuEventQuery)(CudaObject);
  int (*cuEventSynchronize)(CudaObject);
  int (*cuMemAlloc_v2)(CudaAddress *, size_t);
  int (*cuMemFree_v2)(CudaAddress);
  int (*cuMemHostAlloc)(void **, size_t, unsigned);
  int (*cuMemFreeHost)(void *);
  int (*cuMemsetD8Async)(CudaAddress, unsigned char, size_t, CudaObject);
  int (*cuMemcpyHtoDAsync_v2)(CudaAddress, const void *, size_t, CudaObject);
  int (*cuMemcpyDtoHAsync_v2)(void *, CudaAddress, size_t, CudaObject);
  int (*cuModuleLoadData)(CudaObject *, const void *);
  int (*cuModuleUnload)(CudaObject);
  int (*cuModuleGetFunction)(CudaObject *, CudaObject, const char *);
  int (*cuLaunchKernel)(CudaObject, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CudaObject, void **, void **);
  int (*cuGetErrorString)(int, const char **);
} CudaApi;

typedef struct {
  int (*cublasCreate_v2)(CudaObject *);
  int (*cublasDestroy_v2)(CudaObject);
  int (*cublasGetProperty)(int, int *); /* 0: major version, 1: minor, 2: patch */
  int (*cublasSetStream_v2)(CudaObject, CudaObject);
  int (*cublasDgemm_v2)(CudaObject, int, int, int, int, int, const double *, CudaAddress, int, CudaAddress, int, const double *,
                        CudaAddress, int);
} CublasApi;

typedef struct {
  int (*nvrtcVersion)(int *, int *);
  int (*nvrtcCreateProgram)(CudaObject *, const char *, const char *, int, const char *const *, const char *const *);
  int (*nvrtcCompileProgram)(CudaObject, int, const char *const *);
  int (*nvrtcGetCUBINSize)(CudaObject, size_t *);
  int (*nvrtcGetCUBIN)(CudaObject, char *);
  int (*nvrtcGetProgramLogSize)(CudaObject, size_t *);
  int (*nvrtcGetProgramLog)(CudaObject, char *);
  int (*nvrtcDestroyProgram)(CudaObject *);
  const char *(*nvrtcGetErrorString)(int);
} NvrtcApi;

#endif
