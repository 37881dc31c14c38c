// The part of the CUDA driver API that Pawl uses, declared here and loaded at run time: Pawl builds without CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUgraph = struct CUgraph_st*;
using CUgraphExec = struct CUgraphExec_st*;

// Values of the driver's enumerations (cuda.h); they are part of its stable ABI.
enum CudaDeviceAttribute {
  kMaxThreadsPerBlock = 1,
  kMultiprocessorCount = 16,
  kMaxThreadsPerMultiprocessor = 39,
  kL2CacheSize = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106,
};
enum CudaFunctionAttribute {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
  kFunctionNonPortableClusters = 14,
};
enum CudaLaunchAttribute { kLaunchCooperative = 2, kLaunchClusterDimension = 4 };
struct CudaLaunchAttributeValue {
  int id;
  char padding[4];
  union {
    int cooperative;
    struct {
      unsigned x, y, z;
    } cluster;
    char bytes[64];
  } value;
};
struct CudaLaunchConfig {
  unsigned grid_x, grid_y, grid_z;
  unsigned block_x, block_y, block_z;
  unsigned shared_bytes;
  CUstream stream;
  CudaLaunchAttributeValue* attributes;
  unsigned attribute_count;
};
enum CudaMemoryType { kHostMemory = 1, kDeviceMemory = 2 };
struct CudaCopy2D {
  size_t from_x, from_y;
  int from_type;  // CudaMemoryType
  const void* from_host;
  CUdeviceptr from_device;
  void* from_array;
  size_t from_pitch;
  size_t to_x, to_y;
  int to_type;
  void* to_host;
  CUdeviceptr to_device;
  void* to_array;
  size_t to_pitch;
  size_t width, height;  // in bytes, in rows
};
constexpr int kLimitPersistingL2 = 6;
constexpr unsigned kStreamNonBlocking = 1;  // does not wait for the default stream
constexpr int kCaptureRelaxed = 2;
constexpr unsigned kHostRegisterPortable = 1, kHostRegisterDeviceMap = 2;

struct CudaDriver {
  CUresult (*Init)(unsigned);
  CUresult (*DriverGetVersion)(int*);
  CUresult (*GetErrorName)(CUresult, const char**);
  CUresult (*GetErrorString)(CUresult, const char**);
  CUresult (*DeviceGetCount)(int*);
  CUresult (*DeviceGet)(CUdevice*, int);
  CUresult (*DeviceGetName)(char*, int, CUdevice);
  CUresult (*DeviceGetUuid)(unsigned char*, CUdevice);
  CUresult (*DeviceGetAttribute)(int*, int, CUdevice);
  CUresult (*DeviceTotalMem)(size_t*, CUdevice);
  CUresult (*PrimaryCtxRetain)(CUcontext*, CUdevice);
  CUresult (*CtxSetCurrent)(CUcontext);
  CUresult (*CtxGetCurrent)(CUcontext*);
  CUresult (*CtxSetLimit)(int, size_t);
  CUresult (*CtxSynchronize)();
  CUresult (*ModuleLoadData)(CUmodule*, const void*);
  CUresult (*ModuleUnload)(CUmodule);
  CUresult (*ModuleGetFunction)(CUfunction*, CUmodule, const char*);
  CUresult (*ModuleGetGlobal)(CUdeviceptr*, size_t*, CUmodule, const char*);
  CUresult (*FuncGetAttribute)(int*, int, CUfunction);
  CUresult (*FuncSetAttribute)(CUfunction, int, int);
  CUresult (*OccupancyMaxActiveBlocks)(int*, CUfunction, int, size_t);
  CUresult (*MemAlloc)(CUdeviceptr*, size_t);
  CUresult (*MemFree)(CUdeviceptr);
  CUresult (*MemGetInfo)(size_t*, size_t*);
  CUresult (*MemcpyDtoH)(void*, CUdeviceptr, size_t);
  CUresult (*Memcpy2DAsync)(const CudaCopy2D*, CUstream);
  CUresult (*MemcpyHtoDAsync)(CUdeviceptr, const void*, size_t, CUstream);
  CUresult (*MemcpyDtoDAsync)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
  CUresult (*MemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
  CUresult (*MemHostRegister)(void*, size_t, unsigned);
  CUresult (*MemHostUnregister)(void*);
  CUresult (*StreamCreate)(CUstream*, unsigned);
  CUresult (*StreamDestroy)(CUstream);
  CUresult (*StreamSynchronize)(CUstream);
  CUresult (*StreamBeginCapture)(CUstream, int);
  CUresult (*StreamEndCapture)(CUstream, CUgraph*);
  CUresult (*GraphInstantiate)(CUgraphExec*, CUgraph, unsigned long long);
  CUresult (*GraphLaunch)(CUgraphExec, CUstream);
  CUresult (*GraphExecDestroy)(CUgraphExec);
  CUresult (*GraphDestroy)(CUgraph);
  CUresult (*EventCreate)(CUevent*, unsigned);
  CUresult (*EventRecord)(CUevent, CUstream);
  CUresult (*EventElapsedTime)(float*, CUevent, CUevent);
  CUresult (*LaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                           void**, void**);
  CUresult (*LaunchKernelEx)(const CudaLaunchConfig*, CUfunction, void**, void**);
  CUresult (*ProfilerStart)();
  CUresult (*ProfilerStop)();
};

// Loads libcuda once for the process. Unavailable, with advice, where there is none.
absl::StatusOr<const CudaDriver*> LoadCudaDriver();

// The loaded driver; LoadCudaDriver must have succeeded.
const CudaDriver& Cuda();

// What a driver call's result means to Pawl; sticky errors are the candidate's:
//   Aborted            the context is gone: illegal address, trap, misaligned access
//   ResourceExhausted  out of memory
//   InvalidArgument    the driver refused what it was given: a launch, a cubin
//   Internal           the machine: ECC, driver too old, lost GPU
absl::Status CudaStatus(CUresult result, const char* what);

// "MemAlloc" of "MemAlloc(&address, bytes)".
inline std::string CallName(std::string_view call) { return std::string(call.substr(0, call.find('('))); }

#define PAWL_CUDA(call)                                                                                    \
  do {                                                                                                     \
    if (::pawl::CUresult pawl_result = ::pawl::Cuda().call) return ::pawl::CudaStatus(pawl_result, #call); \
  } while (false)

// Copies ordinary memory to the GPU, and returns when it is there.
absl::Status CopyToGpu(CUdeviceptr to, const void* from, size_t bytes);

#define PAWL_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                  \
    if (absl::Status pawl_status = (expression); !pawl_status.ok()) return pawl_status; \
  } while (false)

}  // namespace pawl
