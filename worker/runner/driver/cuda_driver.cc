#include "worker/runner/driver/cuda_driver.h"

#include <dlfcn.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

CudaDriver driver;
bool loaded = false;

// Apart from the others: it returns once the bytes are staged, and a stream of ours may run a kernel before they
// arrive.
CUresult (*copy_to_gpu)(CUdeviceptr, const void*, size_t) = nullptr;

template <typename Function>
bool Find(void* library, const char* name, Function* function, std::string* missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) absl::StrAppend(missing, " ", name);
  return *function != nullptr;
}

absl::Status Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("libcuda.so.1 can't be loaded (", dlerror(), "): install the NVIDIA driver of this GPU"));
  }
  std::string missing;
  Find(library, "cuInit", &driver.Init, &missing);
  Find(library, "cuDriverGetVersion", &driver.DriverGetVersion, &missing);
  Find(library, "cuGetErrorName", &driver.GetErrorName, &missing);
  Find(library, "cuGetErrorString", &driver.GetErrorString, &missing);
  Find(library, "cuDeviceGetCount", &driver.DeviceGetCount, &missing);
  Find(library, "cuDeviceGet", &driver.DeviceGet, &missing);
  Find(library, "cuDeviceGetName", &driver.DeviceGetName, &missing);
  Find(library, "cuDeviceGetUuid", &driver.DeviceGetUuid, &missing);
  Find(library, "cuDeviceGetAttribute", &driver.DeviceGetAttribute, &missing);
  Find(library, "cuDeviceTotalMem_v2", &driver.DeviceTotalMem, &missing);
  Find(library, "cuDevicePrimaryCtxRetain", &driver.PrimaryCtxRetain, &missing);
  Find(library, "cuCtxSetCurrent", &driver.CtxSetCurrent, &missing);
  Find(library, "cuCtxGetCurrent", &driver.CtxGetCurrent, &missing);
  Find(library, "cuCtxSetLimit", &driver.CtxSetLimit, &missing);
  Find(library, "cuCtxSynchronize", &driver.CtxSynchronize, &missing);
  Find(library, "cuModuleLoadData", &driver.ModuleLoadData, &missing);
  Find(library, "cuModuleUnload", &driver.ModuleUnload, &missing);
  Find(library, "cuModuleGetFunction", &driver.ModuleGetFunction, &missing);
  Find(library, "cuModuleGetGlobal_v2", &driver.ModuleGetGlobal, &missing);
  Find(library, "cuFuncGetAttribute", &driver.FuncGetAttribute, &missing);
  Find(library, "cuFuncSetAttribute", &driver.FuncSetAttribute, &missing);
  Find(library, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &driver.OccupancyMaxActiveBlocks, &missing);
  Find(library, "cuMemAlloc_v2", &driver.MemAlloc, &missing);
  Find(library, "cuMemFree_v2", &driver.MemFree, &missing);
  Find(library, "cuMemGetInfo_v2", &driver.MemGetInfo, &missing);
  Find(library, "cuMemcpyDtoH_v2", &driver.MemcpyDtoH, &missing);
  Find(library, "cuMemcpy2DAsync_v2", &driver.Memcpy2DAsync, &missing);
  Find(library, "cuMemcpyHtoD_v2", &copy_to_gpu, &missing);
  Find(library, "cuMemcpyHtoDAsync_v2", &driver.MemcpyHtoDAsync, &missing);
  Find(library, "cuMemcpyDtoDAsync_v2", &driver.MemcpyDtoDAsync, &missing);
  Find(library, "cuMemsetD8Async", &driver.MemsetD8Async, &missing);
  Find(library, "cuMemHostRegister_v2", &driver.MemHostRegister, &missing);
  Find(library, "cuMemHostUnregister", &driver.MemHostUnregister, &missing);
  Find(library, "cuStreamCreate", &driver.StreamCreate, &missing);
  Find(library, "cuStreamDestroy_v2", &driver.StreamDestroy, &missing);
  Find(library, "cuStreamSynchronize", &driver.StreamSynchronize, &missing);
  Find(library, "cuStreamBeginCapture_v2", &driver.StreamBeginCapture, &missing);
  Find(library, "cuStreamEndCapture", &driver.StreamEndCapture, &missing);
  Find(library, "cuGraphInstantiateWithFlags", &driver.GraphInstantiate, &missing);
  Find(library, "cuGraphLaunch", &driver.GraphLaunch, &missing);
  Find(library, "cuGraphExecDestroy", &driver.GraphExecDestroy, &missing);
  Find(library, "cuGraphDestroy", &driver.GraphDestroy, &missing);
  Find(library, "cuEventCreate", &driver.EventCreate, &missing);
  Find(library, "cuEventRecord", &driver.EventRecord, &missing);
  Find(library, "cuEventElapsedTime", &driver.EventElapsedTime, &missing);
  Find(library, "cuLaunchKernel", &driver.LaunchKernel, &missing);
  Find(library, "cuLaunchKernelEx", &driver.LaunchKernelEx, &missing);
  Find(library, "cuProfilerStart", &driver.ProfilerStart, &missing);
  Find(library, "cuProfilerStop", &driver.ProfilerStop, &missing);
  if (!missing.empty()) {
    return absl::UnavailableError(
        absl::StrCat("libcuda.so.1 lacks", missing, ": the driver is too old, CUDA 12 needs 525"));
  }
  loaded = true;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<const CudaDriver*> LoadCudaDriver() {
  static const absl::Status status = Load();
  if (!status.ok()) return status;
  return &driver;
}

const CudaDriver& Cuda() { return driver; }

absl::Status CopyToGpu(CUdeviceptr to, const void* from, size_t bytes) {
  PAWL_RETURN_IF_ERROR(CudaStatus(copy_to_gpu(to, from, bytes), "MemcpyHtoD"));
  constexpr CUstream kDefault = nullptr;
  PAWL_CUDA(StreamSynchronize(kDefault));
  return absl::OkStatus();
}

absl::Status CudaStatus(CUresult result, const char* what) {
  if (result == 0) return absl::OkStatus();
  const char* name = "CUDA_ERROR_UNKNOWN";
  const char* text = "unknown error";
  if (loaded) {
    driver.GetErrorName(result, &name);
    driver.GetErrorString(result, &text);
  }
  const std::string message = absl::StrCat(name, " (", result, "): ", text, ", in cu", what);
  switch (result) {
    case 2:
      return absl::ResourceExhaustedError(message);
    case 1:    // invalid value
    case 200:  // invalid image
    case 209:  // no kernel image for this GPU
    case 218:  // invalid PTX
    case 225:  // device code that waits for launches of its own
    case 302:  // a symbol that no module defines
    case 303:  // a module that can't be set up
    case 500:  // named symbol not found
    case 701:  // launch out of resources
    case 720:  // too many blocks in a cooperative launch
    case 811:  // device code that launches kernels
    case 812:
    case 912:  // a cluster that does not fit
      return absl::InvalidArgumentError(message);
    case 35:
    case 222:
    case 803:
      return absl::InternalError(absl::StrCat(message, ": the driver is older than the toolkit; upgrade the driver"));
    case 214:
      return absl::InternalError(absl::StrCat(message, ": an uncorrectable ECC error; take this GPU out of service"));
    default:
      // The seven hundreds are what running kernels do: illegal address, trap, misaligned access, timeout.
      if (result >= 700 && result < 800) return absl::AbortedError(message);
      return absl::InternalError(message);
  }
}

}  // namespace pawl
