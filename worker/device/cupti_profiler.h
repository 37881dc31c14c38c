#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/profiler.h"
#include "worker/device/runner_process.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

// Reads counters by CUPTI in a runner of its own that stays warm and never times: no start of ncu for each profile. It
// gives the metrics that ncu gives, by the same names, without ncu's own advice.
class CuptiProfiler : public Profiler {
 public:
  // Both must outlive it.
  CuptiProfiler(CudaDevice& device, const Metrics& metrics);

  // Unavailable: this machine gives no counters to CUPTI, with the reason. A candidate that faults or hangs costs its
  // own evidence only.
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override;

  const std::vector<std::string>& missing() const override { return missing_; }

  void StopWhen(const Stopped& stopped) { runner_->StopWhen(stopped); }
  void Restart() { runner_->Restart(); }

 private:
  absl::StatusOr<std::vector<NcuKernel>> Measure(const ProfileItem& item);

  CudaDevice& device_;
  const Metrics& metrics_;
  std::vector<std::string> names_, missing_;
  TemporaryFolder folder_;
  std::unique_ptr<RunnerProcess> runner_;
};

// CUPTI as long as it works on this machine, ncu from then on.
class FastestProfiler : public Profiler {
 public:
  // All must outlive it.
  FastestProfiler(Profiler& cupti, Profiler& ncu) : cupti_(cupti), ncu_(ncu) {}

  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override;
  const std::vector<std::string>& missing() const override { return (why_ncu_.empty() ? cupti_ : ncu_).missing(); }
  // Why CUPTI is not used; empty: it is.
  const std::string& why_ncu() const { return why_ncu_; }

 private:
  Profiler& cupti_;
  Profiler& ncu_;
  std::string why_ncu_;
};

// The kernels as ncu's raw page would list them.
std::string RawPage(const std::vector<NcuKernel>& kernels);

}  // namespace pawl
