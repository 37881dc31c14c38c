#include "worker/trial/cuda_trial.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/utf8.h"
#include "kernels/plan.h"
#include "worker/trial/baseline.h"
#include "worker/trial/roofline_check.h"
#include "worker/trial/sanitizer.h"
#include "worker/trial/timed_comparison.h"

namespace pawl {
namespace {

constexpr int64_t kCopyBytes = int64_t{1} << 30;
constexpr absl::Duration kCopyDeadline = absl::Seconds(30);

constexpr int kLadderPairs = 3;

int64_t MemoryOf(const v1::Plan& plan) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) bytes += tensor.elements() * ElementBytes(tensor.type());
  return bytes;
}

// Adds the time until its end to a stage's seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {}
  ~Stopwatch() { *seconds_ += absl::ToDoubleSeconds(absl::Now() - start_); }

 private:
  double* const seconds_;
  const absl::Time start_ = absl::Now();
};

}  // namespace

CudaTrial::CudaTrial(CudaDevice& device, NcuProfiler& profiler, const TrialBuild& build, TrialObserver& observer)
    : device_(device),
      profiler_(profiler),
      build_(build),
      bundle_(*build.bundle),
      observer_(observer),
      steps_(CountSteps(build.trial, *build.bundle)) {}

absl::StatusOr<TrialOutcome> CudaTrial::Run() {
  device_.StopWhen([this] { return observer_.stopped(); });
  const absl::Status status = RunAll();
  device_.StopWhen(nullptr);
  if (absl::IsCancelled(status)) {
    // Nothing that the candidate ran in stays.
    device_.runner().Restart();
    device_.reference().Restart();
  }
  if (!status.ok()) return status;
  Finish();
  return std::move(outcome_);
}

absl::Status CudaTrial::RunAll() {
  absl::Status status;
  if (build_.failure) {
    Fail(*build_.failure);
  } else if (build_.parent) {
    status = RunSteps({&CudaTrial::ValidateOnce, &CudaTrial::CompareWithParent, &CudaTrial::CheckRoofline});
    // A variant that is measured beside the start was kept before, and has passed the rest, but for the sanitizer where
    // the campaign left that to the end.
    const bool total = build_.trial.purpose() == v1::TRIAL_PURPOSE_TOTAL;
    if (status.ok() && total && build_.trial.keep().skip_sanitizer()) status = RunSteps({&CudaTrial::Sanitize});
    if (status.ok() && total) {
      status = RunSteps({&CudaTrial::TimeLadder});
    } else if (status.ok() && faster_ && !total) {
      status = RunSteps({&CudaTrial::ValidateAgain, &CudaTrial::Sanitize, &CudaTrial::Profile});
    }
  } else {
    status = RunSteps({&CudaTrial::ValidateAlone, &CudaTrial::TimeAlone, &CudaTrial::CheckRoofline,
                       &CudaTrial::Sanitize, &CudaTrial::Profile, &CudaTrial::TimeCopy, &CudaTrial::TimeBaseline});
  }
  return status;
}

void CudaTrial::Fail(v1::Failure failure) {
  if (failure.stage() == v1::STAGE_MEASURE && failure.size().empty()) failure.set_size(build_.size);
  failure.set_message(ValidUtf8(failure.message()));
  *result().mutable_failure() = std::move(failure);
}

absl::Status CudaTrial::RunSteps(const std::vector<Step>& steps) {
  for (const Step step : steps) {
    if (failed()) break;
    if (observer_.stopped()) return absl::CancelledError("stopped");
    if (absl::Status status = (this->*step)(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void CudaTrial::Report(v1::Stage stage, const std::string& text) {
  step_ = std::min(step_ + 1, steps_);
  observer_.Report(stage, step_, steps_, absl::StrCat(text, " (", step_, " of ", steps_, ")"));
}

void CudaTrial::Note(const std::string& text) {
  if (text.empty()) return;
  const std::string valid = ValidUtf8(text);  // it may quote a tool
  result().set_notes(result().notes().empty() ? valid : absl::StrCat(result().notes(), "; ", valid));
}

// What is not the machine's fault among errors of validating and timing: a reference that does not run, or a size that
// does not fit into the GPU's memory beside it.
std::optional<v1::Failure> CudaTrial::FailureOf(const absl::Status& status, v1::Stage stage) const {
  if (!absl::IsInvalidArgument(status) && !absl::IsResourceExhausted(status)) return std::nullopt;
  v1::Failure failure;
  failure.set_stage(stage);
  failure.set_check(absl::IsResourceExhausted(status) ? v1::CHECK_OUT_OF_MEMORY : v1::CHECK_FAULT);
  failure.set_message(std::string(status.message()));
  return failure;
}

absl::Status CudaTrial::ValidateOnce() {
  return Validate({.repeats = 2, .report = [this](const std::string& size) {
                     Report(v1::STAGE_VALIDATE, absl::StrCat("validate at ", size));
                   }});
}

absl::Status CudaTrial::ValidateAlone() {
  return Validate({.repeats = 20, .self_test = true, .report = [this](const std::string& size) {
                     Report(v1::STAGE_VALIDATE, absl::StrCat("validate at ", size));
                   }});
}

// Of what is about to be kept. That is also what a candidate more than ten times as fast as its parent needs before it
// is believed: new seeds.
absl::Status CudaTrial::ValidateAgain() {
  Report(v1::STAGE_VALIDATE, "validate 20 times with fresh inputs");
  return Validate({.repeats = 20});
}

absl::Status CudaTrial::Validate(const ValidationOptions& options) {
  const Stopwatch watch(&validate_seconds_);
  absl::StatusOr<Validation> validation = pawl::Validate(device_, bundle_, build_.candidate, options);
  if (!validation.ok()) {
    const std::optional<v1::Failure> failure = FailureOf(validation.status(), v1::STAGE_VALIDATE);
    if (!failure) return validation.status();
    Fail(*failure);
    return absl::OkStatus();
  }
  const std::vector<v1::OutputError>& errors = validation->errors[build_.size];
  if (!errors.empty()) result().mutable_errors()->Assign(errors.begin(), errors.end());
  const std::vector<v1::ResourceUse>& resources = validation->resources[build_.size];
  if (!resources.empty()) resources_ = resources;
  if (validation->failure) Fail(*validation->failure);
  return absl::OkStatus();
}

absl::StatusOr<Timing> CudaTrial::Time(const BuiltSize& candidate, const BuiltSize& parent, int pairs) {
  if (observer_.stopped()) return absl::CancelledError("stopped");
  absl::StatusOr<Timing> timing = TimeAgainst(device_, bundle_, candidate, parent, {.pairs = pairs});
  if (timing.ok()) return timing;
  const std::optional<v1::Failure> failure = FailureOf(timing.status(), v1::STAGE_MEASURE);
  if (!failure) return timing.status();
  Timing failed;
  failed.failure = failure;
  return failed;
}

absl::Status CudaTrial::CompareWithParent() {
  const Stopwatch watch(&measure_seconds_);
  const BuiltSize& candidate = build_.at();
  const BuiltSize& parent = *build_.parent;
  PairTimer timer;
  timer.time = [&](int pairs) { return Time(candidate, parent, pairs); };
  timer.start_fresh_process = [&] { device_.runner().Restart(); };
  timer.time_parent_alone = [&](int pairs) {
    device_.runner().Restart();
    return Time(parent, parent, pairs);
  };
  timer.report = [&](bool confirms) {
    Report(v1::STAGE_MEASURE, confirms ? "compare again in a fresh process" : "compare with the parent");
  };
  const KeepRule rule = KeepRuleOf(build_.trial.keep());
  absl::StatusOr<TimedComparison> timed = CompareTimed(timer, bundle_.timing(), build_.trial.parent_us(), rule);
  if (!timed.ok()) return timed.status();
  SetTimes(*timed, &result());
  Note(timed->notes);
  if (timed->failure) Fail(*timed->failure);
  faster_ = timed->comparison.result() == v1::FASTER;
  return absl::OkStatus();
}

absl::Status CudaTrial::TimeAlone() {
  const Stopwatch watch(&measure_seconds_);
  Report(v1::STAGE_MEASURE, "time against itself");
  const int pairs = KeepRule().first_pairs;
  absl::StatusOr<Timing> timing = Time(build_.at(), build_.at(), pairs);
  if (timing.ok() && !timing->failure && timing->times.pairs_size() < pairs) {
    device_.runner().Restart();
    timing = Time(build_.at(), build_.at(), pairs);
  }
  if (!timing.ok()) return timing.status();
  const v1::CompareReply& times = timing->times;
  *result().mutable_pairs() = times.pairs();
  result().set_discarded(times.discarded());
  result().set_warm_us(times.candidate_warm_us());
  result().set_cold_us(times.candidate_cold_us());
  result().set_parent_warm_us(times.parent_warm_us());
  result().set_parent_cold_us(times.parent_cold_us());
  if (timing->failure) {
    Fail(*timing->failure);
  } else if (times.pairs_size() < pairs) {
    v1::Failure failure;
    failure.set_stage(v1::STAGE_MEASURE);
    failure.set_check(v1::CHECK_UNSTEADY);
    failure.set_message(absl::StrCat("clocks or throttle reasons changed in ", times.discarded(),
                                     " pairs: is something else running on the GPU, or is it too hot?"));
    Fail(failure);
  }
  return absl::OkStatus();
}

// For the report: a size that does not fit, or whose start variant takes too long, is left out. Wrong outputs of the
// best are wrong here too.
absl::Status CudaTrial::TimeLadder() {
  const Stopwatch watch(&measure_seconds_);
  Report(v1::STAGE_MEASURE, "time start and best at every size");
  const bool cold = bundle_.timing() == v1::TIMING_MODE_COLD;
  for (const BuiltSize& start : build_.parent_ladder) {
    const BuiltSize& best = *build_.candidate.Find(start.plan.size());
    absl::StatusOr<Timing> timing = Time(best, start, kLadderPairs);
    if (!timing.ok()) return timing.status();
    const v1::Check check = timing->failure ? timing->failure->check() : v1::CHECK_UNSPECIFIED;
    if (check == v1::CHECK_TIMED_OUTPUT || check == v1::CHECK_UNTOUCHED) {
      timing->failure->set_size(start.plan.size());
      Fail(*timing->failure);
      return absl::OkStatus();
    }
    if (timing->failure) {
      Note(absl::StrCat("not timed at ", start.plan.size(), ": ", timing->failure->message()));
      continue;
    }
    if (timing->times.pairs().empty()) continue;
    const v1::CompareReply& times = timing->times;
    v1::SizeTime* size = result().add_sizes();
    size->set_size(start.plan.size());
    size->set_start_us(cold ? times.parent_cold_us() : times.parent_warm_us());
    size->set_best_us(cold ? times.candidate_cold_us() : times.candidate_warm_us());
    size->set_start_bytes(MemoryOf(start.plan));
    size->set_best_bytes(MemoryOf(best.plan));
  }
  return absl::OkStatus();
}

absl::Status CudaTrial::CheckRoofline() {
  if (result().pairs().empty()) return absl::OkStatus();  // all were thrown away: there is no time
  const double share = build_.trial.keep().floor() > 0 ? build_.trial.keep().floor() : 1;
  const std::optional<v1::Failure> below =
      BelowRoofline(device_.gpu().name(), bundle_, build_.at().plan, result().warm_us(), result().cold_us(), share);
  if (below) Fail(*below);
  return absl::OkStatus();
}

absl::Status CudaTrial::Sanitize() {
  const Stopwatch watch(&validate_seconds_);
  Report(v1::STAGE_VALIDATE, "compute-sanitizer at small sizes");
  if (build_.trial.keep().skip_sanitizer() && build_.trial.purpose() != v1::TRIAL_PURPOSE_TOTAL) {
    Note("compute-sanitizer was left out, as the campaign asks");
    return absl::OkStatus();
  }
  if (device_.toolkit().compute_sanitizer.empty()) {
    Note("compute-sanitizer is not installed here");
    return absl::OkStatus();
  }
  std::vector<const BuiltSize*> few;
  for (size_t i = 0; i < build_.small; ++i) few.push_back(&build_.candidate.sizes[i]);
  absl::StatusOr<Sanitizing> sanitizing = pawl::Sanitize(device_, few);
  if (!sanitizing.ok()) return sanitizing.status();
  if (sanitizing->failure) {
    Fail(*sanitizing->failure);
  } else {
    result().set_sanitized(true);
  }
  return absl::OkStatus();
}

absl::Status CudaTrial::Profile() {
  const Stopwatch watch(&profile_seconds_);
  Report(v1::STAGE_PROFILE, "profile with ncu");
  absl::StatusOr<Profiling> profiling = profiler_.Profile({Item()});
  if (!profiling.ok()) return profiling.status();
  *result().mutable_evidence() = std::move(profiling->evidence[0]);
  v1::Evidence& evidence = *result().mutable_evidence();
  evidence.set_partial_reason(ValidUtf8(evidence.partial_reason()));
  result().set_profiled(!evidence.partial());
  if (!result().profiled()) Note(absl::StrCat("no counters: ", result().evidence().partial_reason()));
  outcome_.artifacts.push_back({v1::Blob::CUBIN, *build_.at().cubin});
  if (!profiling->raw.empty()) outcome_.artifacts.push_back({v1::Blob::NCU_REPORT, std::move(profiling->raw)});
  return absl::OkStatus();
}

absl::Status CudaTrial::TimeCopy() {
  const Stopwatch watch(&measure_seconds_);
  v1::RunnerRequest copy;
  copy.mutable_copy()->set_bytes(kCopyBytes);
  absl::StatusOr<v1::RunnerReply> copied = device_.runner().Ask(copy, kCopyDeadline);
  if (!copied.ok()) return copied.status();
  if (copied->has_copy()) result().set_copy_gb_s(copied->copy().gb_s());
  return absl::OkStatus();
}

absl::Status CudaTrial::TimeBaseline() {
  if (bundle_.baseline_command().empty()) return absl::OkStatus();
  const Stopwatch watch(&measure_seconds_);
  Report(v1::STAGE_MEASURE, "time the baseline");
  absl::StatusOr<std::vector<v1::BaselineTime>> times =
      RunBaseline(bundle_, device_.gpu().uuid(), device_.sandboxing(), device_.stopped());
  if (absl::IsCancelled(times.status())) return times.status();
  if (!times.ok()) {
    result().set_baseline_error(ValidUtf8(std::string(times.status().message())));
    return absl::OkStatus();
  }
  result().mutable_baselines()->Assign(times->begin(), times->end());
  return absl::OkStatus();
}

void CudaTrial::Finish() {
  result().set_build(build_.command);
  const BuiltSize* built = build_.candidate.Find(build_.size);  // none where the static check failed before it
  if (built != nullptr && built->cubin != nullptr) result().set_cubin_hash(built->module);
  if (!resources_.empty() && !result().has_evidence()) {
    *result().mutable_evidence() = EvidenceWithoutCounters(
        device_.gpu(), Item(), "not profiled: only what is about to be kept is", profiler_.metrics());
  }
  if (!build_.candidate.log.empty()) outcome_.artifacts.push_back({v1::Blob::LOG, build_.candidate.log});
  for (const auto& [stage, seconds] :
       {std::pair{v1::STAGE_STATIC_CHECK, build_.check_seconds}, std::pair{v1::STAGE_BUILD, build_.build_seconds},
        std::pair{v1::STAGE_VALIDATE, validate_seconds_}, std::pair{v1::STAGE_MEASURE, measure_seconds_},
        std::pair{v1::STAGE_PROFILE, profile_seconds_}}) {
    if (seconds <= 0) continue;
    v1::StageTime* time = result().add_stages();
    time->set_stage(stage);
    time->set_seconds(seconds);
  }
}

}  // namespace pawl
