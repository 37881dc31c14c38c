#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "worker/runner/arena.h"
#include "worker/runner/cuda_driver.h"

namespace pawl {

// A cubin in the runner's context. Owns the module; launches plans from it.
class Module {
 public:
  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  absl::Status Load(const std::string& cubin);
  const std::string& cubin() const { return cubin_; }
  int64_t bytes() const { return bytes_; }  // of GPU memory that loading took
  absl::StatusOr<v1::ResourceUse> Resources(const v1::PlanLaunch& launch);

  // Queues every launch of the plan, its tensors in the arena at `base`.
  absl::Status Call(const v1::Plan& plan, const Arena& arena, CUdeviceptr base, CUstream stream);
  // The same with each tensor in an allocation of its own.
  absl::Status Call(const v1::Plan& plan, const std::vector<CUdeviceptr>& tensors, CUstream stream);

 private:
  absl::StatusOr<CUfunction> Function(const std::string& entry);

  CUmodule module_ = nullptr;
  std::string cubin_;
  int64_t bytes_ = 0;
  std::map<std::string, CUfunction> functions_;
  std::map<std::string, int> dynamic_shared_;  // the limit raised so far
};

}  // namespace pawl
