#include "worker/trial/trial_pipeline.h"

#include <algorithm>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "worker/build/cubin.h"
#include "worker/device/profiler.h"
#include "worker/trial/trial_run.h"
#include "worker/trial/trial_steps.h"

namespace pawl {
namespace {

class NoObserver : public TrialObserver {
 public:
  void Report(v1::Stage, int, int, const std::string&) override {}
  bool stopped() const override { return false; }
};

absl::Status RunSteps(TrialRun& run, std::initializer_list<TrialStep> steps) {
  if (run.build.failure && !run.failed()) run.Fail(*run.build.failure);
  for (const TrialStep step : steps) {
    if (run.failed()) break;
    if (run.observer.stopped()) return absl::CancelledError("stopped");
    if (absl::Status status = step(run); !status.ok()) return status;
  }
  return absl::OkStatus();
}

// With compute-sanitizer at the small sizes beside these steps, which time nothing. What is short of time or memory
// there may be so because of the others: it is tried again alone before it counts.
absl::Status RunBesideSanitizer(TrialRun& run, TrialStep first, TrialStep second = nullptr) {
  const auto steps = [&] {
    absl::Status status = RunSteps(run, {first});
    return status.ok() && second != nullptr ? RunSteps(run, {second}) : status;
  };
  absl::Status status = RunSteps(run, {});
  if (!status.ok() || run.failed()) return status;  // of an earlier step: that counts
  status = RunSteps(run, {BeginSanitizing});
  if (status.ok()) status = steps();
  if (status.ok()) status = RunSteps(run, {EndSanitizing});
  if (!status.ok() || !run.failed()) return status;
  const v1::Check check = run.result().failure().check();
  if (check != v1::CHECK_TIMEOUT && check != v1::CHECK_OUT_OF_MEMORY) return status;
  run.sanitizer.reset();
  run.device.runner().EndSpare();
  run.result().clear_failure();
  status = steps();
  return status.ok() ? RunSteps(run, {BeginSanitizing, EndSanitizing}) : status;
}

// Stacks of this size grow what a context keeps for them.
constexpr int kLargeStack = 4096;

bool CallsDriver(const BuiltVariant& variant) {
  return std::any_of(variant.sizes.begin(), variant.sizes.end(), [](const BuiltSize& size) {
    if (size.cubin == nullptr) return false;
    const absl::StatusOr<std::vector<std::string>> called = DriverFunctions(*size.cubin);
    return called.ok() && !called->empty();
  });
}

// A context keeps what its modules made it take when they have gone: the heap, what was printed, room for stacks.
bool GrewContext(const TrialRun& run) {
  if (CallsDriver(run.build.candidate) || std::any_of(run.more.begin(), run.more.end(), CallsDriver)) return true;
  return std::any_of(run.resources.begin(), run.resources.end(),
                     [](const v1::ResourceUse& use) { return use.local_bytes() > kLargeStack; });
}

// What a wrong candidate wrote where it should not have may be Pawl's own code, or what the next trial is checked with.
bool WroteWhatIsWrong(TrialRun& run) {
  switch (run.result().failure().check()) {
    case v1::CHECK_TOLERANCE:
    case v1::CHECK_NON_FINITE:
    case v1::CHECK_DETERMINISM:
    case v1::CHECK_INPUT_CHANGED:
    case v1::CHECK_GUARD_BAND:
    case v1::CHECK_FAULT:
    case v1::CHECK_TIMED_OUTPUT:
    case v1::CHECK_UNTOUCHED:
      return true;
    default:
      return false;
  }
}

// Nothing of a trial stays in the GPU's memory.
void Clear(TrialRun& run) {
  run.sanitizer.reset();
  if (GrewContext(run)) {
    run.device.runner().Restart();
  } else if (WroteWhatIsWrong(run)) {
    run.device.runner().Restart();
    (void)run.device.runner().OpenSpare();  // opens while the next variant is built
  } else {
    run.device.runner().UnloadAll();
  }
  run.device.reference().UnloadAll();
}

// A campaign begins with its start, and compute-sanitizer runs over it later, with what is kept first. A start that
// somebody proposed is judged at once: others may be proposed instead.
absl::Status RunAlone(TrialRun& run) {
  const v1::Trial& trial = run.build.trial;
  const bool later = trial.purpose() == v1::TRIAL_PURPOSE_ITERATION && !trial.sanitize_start();
  absl::Status status = RunSteps(run, {ChooseInputs});
  if (status.ok()) {
    status = later ? RunSteps(run, {OpenSpare, ValidateStart, CheckReference, SanitizeLater})
                   : RunBesideSanitizer(run, ValidateStart, CheckReference);
  }
  if (!status.ok()) return status;
  return RunSteps(run, {TimeAlone, CheckRoofline, ProfileCandidate, TimeCopy, TimeBaseline});
}

// A candidate with its parent's code can't be faster. One that is not faster is not kept, and needs no more. Validating
// it again with fresh inputs is also what one more than ten times as fast as its parent needs before it is believed.
absl::Status RunAgainstParent(TrialRun& run) {
  if (run.build.trial.purpose() != v1::TRIAL_PURPOSE_VERIFY && run.build.same_as_parent()) {
    run.result().set_same_code(true);
    return absl::OkStatus();
  }
  absl::Status status = RunSteps(run, {ChooseInputs, ValidateTwice, CompareWithParent, CheckRoofline});
  if (!status.ok() || !run.faster) return status;
  const v1::TrialPurpose purpose = run.build.trial.purpose();
  if (purpose == v1::TRIAL_PURPOSE_VERIFY) {
    status = RunBesideSanitizer(run, ValidateAgain);
  } else if (!run.build.trial.step()) {  // a step of an expedition is not kept by its own trial
    status = RunSteps(run, {OpenSpare, ValidateAgain, SanitizeLater});
  }
  if (status.ok() && !run.failed() && !run.build.trial.step()) run.result().set_checked_to_keep(true);
  return status.ok() ? RunSteps(run, {ProfileCandidate}) : status;
}

// The best variant with the start as its parent. It was kept before and has passed the rest, except for the sanitizer
// at large sizes, and at small ones where the campaign left that to the end. They come first: a GPU that is too
// unsteady to measure what it gained does not spare it them.
absl::Status RunTotal(TrialRun& run) {
  absl::Status status = RunSteps(run, {ChooseInputs, ValidateTwice});
  const bool last = !run.build.trial.interim();
  if (status.ok() && last && run.build.trial.keep().skip_sanitizer()) {
    status = RunSteps(run, {BeginSanitizing, EndSanitizing});
  }
  if (status.ok() && last) status = RunSteps(run, {SanitizeLargeSizes});
  if (status.ok()) status = RunSteps(run, {CompareWithParent, CheckRoofline});
  return status.ok() && last ? RunSteps(run, {TimeLadder, TimeBesideBaseline}) : status;
}

absl::Status RunByPurpose(TrialRun& run) {
  if (run.build.trial.purpose() == v1::TRIAL_PURPOSE_SANITIZE) return RunSteps(run, {SanitizeKept});
  if (run.build.trial.purpose() == v1::TRIAL_PURPOSE_TOTAL && run.build.parent) return RunTotal(run);
  const absl::Status status = run.build.parent ? RunAgainstParent(run) : RunAlone(run);
  // Without inputs or a reference there is no start: that is the bundle's fault, and no machine's.
  const bool starts = run.build.trial.purpose() == v1::TRIAL_PURPOSE_ITERATION && !run.build.parent;
  if (starts && absl::IsInvalidArgument(status)) {
    run.Fail(*run.ReferenceFailure(status, v1::STAGE_VALIDATE));
    return absl::OkStatus();
  }
  if (!status.ok() || run.build.trial.hand_off().empty()) return status;
  return RunSteps(run, {RunHandOff});
}

absl::Status RunBaseSteps(TrialRun& run) {
  return RunSteps(run, {ChooseInputs, ValidateStart, CheckReference, ProfileCandidate});
}

absl::Status RunPassedBaseSteps(TrialRun& run) {
  return RunSteps(run, {ChooseInputs, ValidateTwice, ProfileCandidate});
}

absl::Status RunBesideBaseSteps(TrialRun& run) {
  absl::Status status = RunSteps(run, {ChooseInputs, ValidateTwice, CompareWithParent, CheckRoofline});
  if (status.ok() && run.faster) status = RunBesideSanitizer(run, ValidateAgain);
  return status.ok() ? RunSteps(run, {ProfileCandidate}) : status;
}

// What a result says beside the findings of the steps.
void Finish(TrialRun& run) {
  v1::TrialResult& result = run.result();
  result.set_build(run.build.command);
  result.set_built_ahead(run.build.built_ahead);
  const BuildCounts builds = run.device.builder().TakeCounts();
  result.set_cached_builds(builds.cached);
  result.set_compiled_builds(builds.compiled);
  const BuiltSize* built = run.build.candidate.Find(run.build.size);  // null: the static check failed before it
  if (built != nullptr && built->cubin != nullptr) result.set_cubin_hash(built->module);
  if (!run.resources.empty() && !result.has_evidence()) {
    *result.mutable_evidence() = EvidenceWithoutCounters(
        run.device.gpu(), run.item(), "not profiled: only what is about to be kept is", run.device.metrics());
  }
  const std::string& log = run.build.candidate.log;
  if (!log.empty()) run.outcome.artifacts.push_back({v1::Blob::LOG, log});
  const TrialBuild& build = run.build;
  for (const auto& [stage, begin, seconds] :
       {std::tuple{v1::STAGE_STATIC_CHECK, build.begin, build.check_seconds},
        std::tuple{v1::STAGE_BUILD, build.begin + build.check_seconds, build.build_seconds}}) {
    if (seconds <= 0) continue;
    v1::StageTime* time = result.add_stages();
    time->set_stage(stage);
    time->set_begin(begin);
    time->set_seconds(seconds);
  }
  for (v1::StageTime& time : run.stages) *result.add_stages() = std::move(time);
}

absl::StatusOr<TrialOutcome> RunPath(absl::Status (*path)(TrialRun&), GpuDevice& device, const TrialBuild& build,
                                     TrialObserver& observer) {
  TrialRun run(device, build, observer);
  device.StopWhen([&observer] { return observer.stopped(); });
  const absl::Status status = path(run);
  Clear(run);
  device.StopWhen(nullptr);
  if (absl::IsCancelled(status)) {
    // No process that the candidate ran in stays, nor one that was started for it.
    device.runner().Restart();
    device.runner().EndSpare();
    device.reference().Restart();
    device.EndProfiler();
  }
  if (!status.ok()) return status;
  Finish(run);
  return std::move(run.outcome);
}

}  // namespace

absl::StatusOr<TrialOutcome> RunTrial(GpuDevice& device, const TrialBuild& build, TrialObserver& observer) {
  return RunPath(RunByPurpose, device, build, observer);
}

absl::StatusOr<TrialOutcome> RunBase(GpuDevice& device, const TrialBuild& build, bool passed, TrialObserver& observer) {
  return RunPath(passed ? RunPassedBaseSteps : RunBaseSteps, device, build, observer);
}

absl::StatusOr<TrialOutcome> RunBesideBase(GpuDevice& device, const TrialBuild& build, TrialObserver& observer) {
  return RunPath(RunBesideBaseSteps, device, build, observer);
}

absl::StatusOr<MeasuredVariant> MeasureBesideStart(GpuDevice& device, const TrialBuild& build) {
  NoObserver nobody;
  TrialRun run(device, build, nobody);
  run.reference_fails_candidate = false;
  absl::Status status = RunSteps(run, {ChooseInputs, ValidateTwice, TimeBesideParent, CheckRoofline, ValidateSurprise});
  Clear(run);
  if (!status.ok()) return status;
  Finish(run);
  return MeasuredVariant{std::move(run.outcome.result), std::move(run.resources), std::move(run.times), run.timed};
}

absl::StatusOr<v1::TrialResult> ValidateStartVariant(GpuDevice& device, const TrialBuild& build) {
  NoObserver nobody;
  TrialRun run(device, build, nobody);
  run.reference_fails_candidate = false;
  absl::Status status = RunSteps(run, {ChooseInputs, ValidateStart, CheckReference});
  Clear(run);
  if (!status.ok()) return status;
  return std::move(run.outcome.result);
}

}  // namespace pawl
