#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/trial/cuda_device.h"
#include "worker/trial/profiler.h"
#include "worker/trial/timer.h"
#include "worker/trial/trial_build.h"
#include "worker/trial/trial_device.h"
#include "worker/trial/validator.h"

namespace pawl {

// The GPU part of one trial: everything a variant goes through until it may be kept, and nothing that is not needed
// once it is known that it will not be. One object a trial, one thread.
//
//   against a parent   validate at all sizes, compare by the protocol, roofline; if faster: validate 20 times with
//   fresh
//                      seeds, compute-sanitizer, profile
//   beside the start   validate, compare, roofline, then time both at every size
//   alone              validate 20 times and the tolerance itself, time against itself, roofline, compute-sanitizer,
//                      profile, the copy bandwidth and the bundle's baseline
class CudaTrial {
 public:
  CudaTrial(CudaDevice& device, NcuProfiler& profiler, const TrialBuild& build, TrialObserver& observer);

  // A status is the machine's fault, or CANCELLED.
  absl::StatusOr<TrialOutcome> Run();

 private:
  using Step = absl::Status (CudaTrial::*)();

  absl::Status RunAll();
  absl::Status RunSteps(const std::vector<Step>& steps);
  absl::Status ValidateOnce();
  absl::Status ValidateAlone();
  absl::Status ValidateAgain();
  absl::Status Validate(const ValidationOptions& options);
  absl::Status CompareWithParent();
  absl::Status TimeAlone();
  absl::Status TimeLadder();
  absl::Status CheckRoofline();
  absl::Status Sanitize();
  absl::Status Profile();
  absl::Status TimeCopy();
  absl::Status TimeBaseline();

  absl::StatusOr<Timing> Time(const BuiltSize& candidate, const BuiltSize& parent, int pairs);
  std::optional<v1::Failure> FailureOf(const absl::Status& status, v1::Stage stage) const;
  void Fail(v1::Failure failure);
  bool failed() { return result().has_failure(); }
  void Report(v1::Stage stage, const std::string& text);
  void Note(const std::string& text);
  void Finish();
  ProfileItem Item() const { return {&build_.at(), resources_, build_.bundle->work_on_tensor_cores()}; }
  v1::TrialResult& result() { return outcome_.result; }

  CudaDevice& device_;
  NcuProfiler& profiler_;
  const TrialBuild& build_;
  const v1::Bundle& bundle_;
  TrialObserver& observer_;
  int step_ = 1;  // building was the first
  const int steps_;
  std::vector<v1::ResourceUse> resources_;  // of the launches at the timed size
  bool faster_ = false;
  double validate_seconds_ = 0, measure_seconds_ = 0, profile_seconds_ = 0;
  TrialOutcome outcome_;
};

}  // namespace pawl
