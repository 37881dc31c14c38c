#include "worker/runner/gpu_context.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

std::string UuidText(const unsigned char* bytes) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[3];
    snprintf(hex, sizeof(hex), "%02x", bytes[i]);
    text += hex;
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

absl::StatusOr<v1::GpuInfo> Describe(CUdevice device) {
  v1::GpuInfo gpu;
  char name[256] = "";
  unsigned char uuid[16] = {};
  size_t memory = 0;
  int version = 0;
  PAWL_CUDA(DeviceGetName(name, sizeof(name), device));
  PAWL_CUDA(DeviceGetUuid(uuid, device));
  PAWL_CUDA(DeviceTotalMem(&memory, device));
  PAWL_CUDA(DriverGetVersion(&version));
  gpu.set_name(name);
  gpu.set_uuid(UuidText(uuid));
  gpu.set_memory_bytes(memory);
  gpu.set_driver_cuda_version(version);
  auto attribute = [&](int which) {
    int value = 0;
    Cuda().DeviceGetAttribute(&value, which, device);
    return value;
  };
  gpu.set_compute_major(attribute(kComputeCapabilityMajor));
  gpu.set_compute_minor(attribute(kComputeCapabilityMinor));
  gpu.set_sm_count(attribute(kMultiprocessorCount));
  gpu.set_max_threads_per_sm(attribute(kMaxThreadsPerMultiprocessor));
  gpu.set_max_threads_per_block(attribute(kMaxThreadsPerBlock));
  gpu.set_max_blocks_per_sm(attribute(kMaxBlocksPerMultiprocessor));
  gpu.set_registers_per_sm(attribute(kMaxRegistersPerMultiprocessor));
  gpu.set_shared_per_sm(attribute(kMaxSharedPerMultiprocessor));
  gpu.set_shared_per_block_optin(attribute(kMaxSharedPerBlockOptin));
  gpu.set_l2_bytes(attribute(kL2CacheSize));
  return gpu;
}

}  // namespace

absl::Status GpuContext::Open(int device, const std::string& cubin) {
  if (stream == nullptr) PAWL_RETURN_IF_ERROR(OpenDevice(device));
  if (cubin.empty()) return absl::OkStatus();
  support_cubin = cubin;
  return support.Load(support_cubin, stream, gpu);
}

absl::Status GpuContext::OpenDevice(int device) {
  if (absl::StatusOr<const CudaDriver*> driver = LoadCudaDriver(); !driver.ok()) return driver.status();
  PAWL_CUDA(Init(0));
  int count = 0;
  PAWL_CUDA(DeviceGetCount(&count));
  if (device < 0 || device >= count) {
    return absl::NotFoundError(absl::StrCat("there is no cuda:", device, ": this machine has ", count, " GPUs"));
  }
  CUdevice handle;
  CUcontext context;
  PAWL_CUDA(DeviceGet(&handle, device));
  PAWL_CUDA(PrimaryCtxRetain(&context, handle));
  PAWL_CUDA(CtxSetCurrent(context));
  // No candidate may keep lines in L2 across a flush. GPUs without persisting L2 refuse the limit: nothing to do there.
  // cuCtxResetPersistingL2Cache would add nothing, and launches are slower after some calls of it (docs/verdicts.md).
  Cuda().CtxSetLimit(kLimitPersistingL2, 0);
  absl::StatusOr<v1::GpuInfo> described = Describe(handle);
  if (!described.ok()) return described.status();
  gpu = *described;
  ordinal = device;
  telemetry.Open(gpu.uuid());
  gpu.set_driver_version(telemetry.DriverVersion());
  telemetry.MaxClocks(&gpu);
  PAWL_CUDA(StreamCreate(&stream, kStreamNonBlocking));
  return absl::OkStatus();
}

absl::Status GpuContext::ReserveEvents(size_t count) {
  while (starts.size() < count) {
    PAWL_CUDA(EventCreate(&starts.emplace_back(), 0));
    PAWL_CUDA(EventCreate(&stops.emplace_back(), 0));
  }
  return absl::OkStatus();
}

absl::StatusOr<Module*> GpuContext::FindModule(const std::string& id) {
  auto found = modules.find(id);
  if (found == modules.end()) return absl::FailedPreconditionError(absl::StrCat("module ", id, " was not loaded"));
  return found->second.get();
}

absl::StatusOr<Module*> GpuContext::FindSetup(const v1::Plan& plan, const std::string& id) {
  if (plan.setup().empty()) return nullptr;
  return FindModule(id);
}

}  // namespace pawl
