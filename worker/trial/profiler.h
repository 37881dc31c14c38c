#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "profiles/metrics.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

class CudaDevice;

// Profiles several variants in one ncu run, which share its start of about three seconds. Without counters the
// evidence is partial: geometry, occupancy and resources, with the reason and the fix.
class NcuProfiler {
 public:
  // Both must outlive it.
  explicit NcuProfiler(const CudaDevice& device, const Metrics& metrics = Metrics::Default())
      : device_(device), metrics_(metrics) {}

  const Metrics& metrics() const { return metrics_; }

  // What metrics.toml names and this ncu lacks; known after the first Profile.
  const std::vector<std::string>& missing() const { return missing_; }

  // A status is a fault that hits partial evidence too.
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items);

 private:
  struct Pages;
  absl::StatusOr<Pages> Run(const std::vector<ProfileItem>& items);
  void FindNames();

  const CudaDevice& device_;
  const Metrics& metrics_;
  std::vector<std::string> names_, missing_;  // of metrics to ask for, and of those this ncu lacks
};

// What is known of a variant that was not profiled: geometry, compiler's and driver's resources, what follows from
// them.
v1::Evidence EvidenceWithoutCounters(const v1::GpuInfo& gpu, const ProfileItem& item, const std::string& reason,
                                     const Metrics& metrics = Metrics::Default());

// Profiles one of Pawl's own kernels: no file of the driver says as surely whether counters can be read. Unavailable:
// why they can't.
absl::Status TryCounters(const CudaDevice& device, NcuProfiler& profiler);

// Why ncu gave nothing, in words a user can act on, from its exit and output.
std::string ExplainNcuFailure(const std::string& output);

}  // namespace pawl
