#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "worker/build/builder.h"
#include "worker/build/built_variant.h"
#include "worker/build/cached_compiler.h"
#include "worker/device/cupti_profiler.h"
#include "worker/device/profiler.h"
#include "worker/device/runner_process.h"
#include "worker/host/toolkit.h"
#include "worker/problem/problem_process.h"
#include "worker/process/process.h"
#include "worker/sandbox/sandboxing.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// One GPU with what it takes to examine variants on it: builders, the candidates' runner, the reference process, ncu
// and compute-sanitizer. Building is thread-safe; everything that touches the GPU is for one thread at a time.
class CudaDevice : public GpuDevice {
 public:
  struct Options {
    int device = 0;
    int builders = 1;
    std::map<std::string, std::string> libraries{};  // header libraries beside those that FindToolkit finds
    bool allow_unsandboxed = false;
    std::filesystem::path build_cache = DefaultBuildCache();
    // PyTorch is imported from the start on, in the background: for those who will need a baseline or a problem.py, not
    // at once.
    bool warm_python = false;
  };
  // The metrics must outlive it.
  static absl::StatusOr<std::unique_ptr<CudaDevice>> Open(const Options& options,
                                                          const Metrics& metrics = Metrics::Default());

  const v1::GpuInfo& gpu() const override { return gpu_; }
  v1::Toolchain toolchain() const override;
  Compiler& builder() override { return *cached_; }
  ReferenceCache& references() override { return references_; }
  InputLimits& input_limits() override { return input_limits_; }
  RunnerProcess& runner() override { return *runner_; }
  RunnerProcess& reference() override { return *reference_; }
  ProblemProcess& problem() override { return *problem_; }
  ProvidedPools& pools() override { return pools_; }
  void StopWhen(const Stopped& stopped) override;
  const Stopped& stopped() const override { return stopped_; }
  void Settle() override {
    problem_->Settle();
    runner_->Settle();
  }
  bool has_sanitizer() const override { return !toolkit_.compute_sanitizer.empty(); }
  absl::StatusOr<std::unique_ptr<SanitizerRun>> StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                SanitizerTools tools) override;
  absl::StatusOr<Profiling> Profile(const std::vector<ProfileItem>& items) override {
    Settle();
    return profiler_->Profile(items);
  }
  void EndProfiler() override { cupti_->Restart(); }
  const Metrics& metrics() const override { return metrics_; }
  absl::StatusOr<std::vector<v1::BaselineTime>> TimeBaseline(const v1::Bundle& bundle,
                                                             const std::filesystem::path& folder = {}) override;
  absl::StatusOr<v1::BesideBaseline> TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) override;
  absl::StatusOr<std::vector<v1::HandOffCheck>> CheckHandOff(
      const v1::Bundle& bundle, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) override;

  const Builder& builders() const { return *builder_; }
  FastestProfiler& profiler() { return *profiler_; }
  const Toolkit& toolkit() const { return toolkit_; }
  const std::string& support_cubin() const { return support_cubin_; }
  const std::string& runner_program() const { return runner_program_; }
  const Sandboxing& sandboxing() const { return sandboxing_; }
  bool sandboxed() const { return sandboxing_.on() && builder_->sandboxed(); }
  int ordinal() const { return options_.device; }
  int shared_fd() const { return shared_.get(); }

 private:
  CudaDevice(Options options, const Metrics& metrics) : options_(options), metrics_(metrics), ncu_(*this, metrics) {}

  const Options options_;
  const Metrics& metrics_;
  Toolkit toolkit_;
  Sandboxing sandboxing_;
  std::string runner_program_, support_cubin_;
  Fd shared_;
  std::unique_ptr<Builder> builder_;
  std::unique_ptr<CachedCompiler> cached_;
  std::unique_ptr<RunnerProcess> runner_, reference_;
  v1::GpuInfo gpu_;
  ReferenceCache references_;
  InputLimits input_limits_;
  std::unique_ptr<ProblemProcess> problem_;
  ProvidedPools pools_;
  NcuProfiler ncu_;
  std::unique_ptr<CuptiProfiler> cupti_;
  std::unique_ptr<FastestProfiler> profiler_;
  Stopped stopped_;
};

}  // namespace pawl
