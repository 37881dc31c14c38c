#include "worker/trial/cuda_trial_device.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/gpus.h"
#include "worker/device/profiler.h"
#include "worker/host/toolkit.h"
#include "worker/trial/trial_pipeline.h"

namespace pawl {

absl::StatusOr<std::unique_ptr<CudaTrialDevice>> CudaTrialDevice::Open(const CudaDevice::Options& options,
                                                                       const Metrics& metrics) {
  absl::StatusOr<std::unique_ptr<CudaDevice>> cuda = CudaDevice::Open(options, metrics);
  if (!cuda.ok()) return cuda.status();
  auto device = std::unique_ptr<CudaTrialDevice>(new CudaTrialDevice(*std::move(cuda), options.builders));
  device->Describe();
  return device;
}

void CudaTrialDevice::Describe() {
  described_.set_kind(v1::DEVICE_KIND_CUDA);
  described_.set_label(cuda_->gpu().name());
  *described_.mutable_gpu() = cuda_->gpu();
  *described_.mutable_toolchain() = cuda_->toolchain();
  described_.set_host(HostText());
  described_.set_sandboxed(cuda_->sandboxed());
  const absl::Status counters = TryCounters(*cuda_, cuda_->profiler());
  described_.set_counters(counters.ok());

  if (!counters.ok()) warnings_.push_back(absl::StrCat("no counters, times only: ", counters.message()));
  if (counters.ok() && !cuda_->profiler().missing().empty()) {
    warnings_.push_back(absl::StrCat("this profiler lacks ", absl::StrJoin(cuda_->profiler().missing(), ", ")));
  }
  if (counters.ok() && !cuda_->profiler().why_ncu().empty()) {
    warnings_.push_back(
        absl::StrCat("counters come from ncu, which takes seconds a variant: ", cuda_->profiler().why_ncu()));
  }
  if (!cuda_->builders().sandboxed()) {
    warnings_.push_back("builds are not sandboxed: sources are scanned instead, a weaker guard");
  }
  if (!cuda_->sandboxing().on()) {
    warnings_.push_back(
        absl::StrCat("candidates and baselines run with all that this user may: ", cuda_->sandboxing().description()));
  }
  described_.set_sanitizer(cuda_->has_sanitizer());
  if (!cuda_->has_sanitizer()) {
    warnings_.push_back("compute-sanitizer was not found: variants are kept without it");
  }
  if (FindGpu(cuda_->gpu().name()) == nullptr) {
    warnings_.push_back(
        absl::StrCat(cuda_->gpu().name(), " is not in profiles/gpus: times are not held against a roofline floor"));
  }
}

absl::StatusOr<std::unique_ptr<PreparedTrial>> CudaTrialDevice::Prepare(const v1::Trial& trial,
                                                                        std::shared_ptr<const v1::Bundle> bundle,
                                                                        TrialObserver& observer) {
  const int steps = CountSteps(trial, *bundle);
  observer.Report(v1::STAGE_BUILD, 1, steps, absl::StrCat("build (1 of ", steps, ")"));
  absl::StatusOr<std::unique_ptr<TrialBuild>> build = builder_.Build(trial, std::move(bundle), observer);
  if (!build.ok()) return build.status();
  return *std::move(build);
}

void CudaTrialDevice::AddPythonStart(const TrialObserver& observer, v1::TrialResult* result) {
  const ProblemProcess& python = cuda_->problem();
  const double begin = observer.SecondsAt(python.start_time());
  if (python.start_seconds() <= 0 || python.start_time() == told_start_ || begin + python.start_seconds() < 0) return;
  told_start_ = python.start_time();
  v1::BesideTime& beside = *result->add_beside();
  beside.set_kind(v1::BesideTime::PYTHON_START);
  beside.set_begin(begin);
  beside.set_seconds(python.start_seconds());
}

absl::StatusOr<TrialOutcome> CudaTrialDevice::Run(PreparedTrial& prepared, TrialObserver& observer) {
  const TrialBuild& build = static_cast<TrialBuild&>(prepared);
  absl::StatusOr<TrialOutcome> outcome = RunTrial(*cuda_, build, observer);
  if (!outcome.ok()) return outcome;
  builder_.AddAheadTimes(build.trial, observer, &outcome->result);
  AddPythonStart(observer, &outcome->result);
  outcome->result.set_device(described_.label());
  *outcome->result.mutable_gpu() = described_.gpu();
  *outcome->result.mutable_toolchain() = described_.toolchain();
  return outcome;
}

}  // namespace pawl
