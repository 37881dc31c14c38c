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

// Reads the counters of variants. Without counters the evidence is partial: geometry, occupancy and resources, with the
// reason and the fix.
class Profiler {
 public:
  virtual ~Profiler() = default;
  // A status is a fault that hits partial evidence too.
  virtual absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) = 0;
  // What metrics.toml names and this profiler lacks; known after the first Profile.
  virtual const std::vector<std::string>& missing() const = 0;
};

// Profiles several variants in one ncu run, which share its start of about three seconds.
class NcuProfiler : public Profiler {
 public:
  // Both must outlive it.
  explicit NcuProfiler(CudaDevice& device, const Metrics& metrics = Metrics::Default())
      : device_(device), metrics_(metrics) {}

  const Metrics& metrics() const { return metrics_; }

  const std::vector<std::string>& missing() const override { return missing_; }

  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override;

 private:
  struct Pages;
  absl::StatusOr<Pages> Run(const std::vector<ProfileItem>& items);
  void FindNames();

  CudaDevice& device_;
  const Metrics& metrics_;
  std::vector<std::string> names_, missing_;  // of metrics to ask for, and of those this ncu lacks
};

// What is known of a variant that was not profiled: geometry, compiler's and driver's resources, what follows from
// them.
v1::Evidence EvidenceWithoutCounters(const v1::GpuInfo& gpu, const ProfileItem& item, const std::string& reason,
                                     const Metrics& metrics = Metrics::Default());

// The evidence of each item from the launches that were profiled, in order; with a status, what is known without them.
absl::StatusOr<std::vector<v1::Evidence>> EvidenceOf(const v1::GpuInfo& gpu, const Metrics& metrics,
                                                     const std::vector<ProfileItem>& items,
                                                     const absl::StatusOr<std::vector<NcuKernel>>& kernels);

// Profiles one of Pawl's own kernels: no file of the driver says as surely whether counters can be read. Unavailable:
// why they can't.
absl::Status TryCounters(const CudaDevice& device, Profiler& profiler);

// Why ncu gave nothing, in words a user can act on, from its exit and output.
std::string ExplainNcuFailure(const std::string& output);

}  // namespace pawl
