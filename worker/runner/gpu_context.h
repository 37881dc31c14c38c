#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/limits.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/driver/device_buffer.h"
#include "worker/runner/driver/shared_region.h"
#include "worker/runner/driver/telemetry.h"
#include "worker/runner/input_pools.h"
#include "worker/runner/module.h"
#include "worker/runner/support.h"

namespace pawl {

// What a runner keeps between requests: the context, its one stream, Pawl's own kernels, loaded modules and buffers.
// Dies with the process; single-threaded.
struct GpuContext {
  explicit GpuContext(int shared_fd) : shared(shared_fd) {}

  // May be called again with Pawl's own kernels, once the owner knows what GPU to build them for.
  absl::Status Open(int device, const std::string& cubin);
  absl::StatusOr<Module*> FindModule(const std::string& id);
  // Of a plan's setup launches; null: it has none.
  absl::StatusOr<Module*> FindSetup(const v1::Plan& plan, const std::string& id);
  // Makes at least `count` pairs of events, kept for later requests.
  absl::Status ReserveEvents(size_t count);

  v1::GpuInfo gpu;
  int ordinal = 0;  // as in cuda:0
  CUstream stream = nullptr;
  Support support;
  std::string support_cubin;
  Telemetry telemetry;
  SharedRegion shared;
  DeviceBuffer arena{kMaxAlign};  // tensors of the calls under way
  DeviceBuffer staging;           // outputs that came from another process
  DeviceBuffer flush;             // twice the L2
  std::vector<CUevent> starts, stops;
  std::map<std::string, std::unique_ptr<Module>> modules;
  InputPools pools;

 private:
  absl::Status OpenDevice(int device);
};

}  // namespace pawl
