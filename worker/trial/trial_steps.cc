#include "worker/trial/trial_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/names/utf8.h"
#include "kernels/hidden_sizes.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "profiles/gates.h"
#include "profiles/seat_rule.h"
#include "worker/trial/roofline_check.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/timer.h"
#include "worker/validate/blind_reference.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

constexpr int64_t kCopyBytes = int64_t{1} << 30;
constexpr absl::Duration kCopyDeadline = absl::Seconds(30);
constexpr int kLadderPairs = 3;
// Tensors of a size at which racecheck and initcheck run: they slow a kernel down up to a thousand times, and take
// about 20 s for this much.
constexpr int64_t kSlowToolsBytes = int64_t{16} << 20;
constexpr double kSurprise = 10;  // a larger speedup is not believed before it was validated again

int64_t MemoryOf(const v1::Plan& plan) {
  int64_t bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) bytes += TensorBytes(tensor);
  return bytes;
}

double DecidingUs(const v1::Bundle& bundle, double warm_us, double cold_us) {
  return bundle.timing() == v1::TIMING_MODE_COLD ? cold_us : warm_us;
}

// What is not the machine's fault among errors of validating and timing: a reference that does not run, or a size that
// does not fit into the GPU's memory beside it.
std::optional<v1::Failure> ReferenceFailure(const TrialRun& run, const absl::Status& status, v1::Stage stage) {
  if (!run.reference_fails_candidate) return std::nullopt;
  if (!absl::IsInvalidArgument(status) && !absl::IsResourceExhausted(status)) return std::nullopt;
  v1::Failure failure;
  failure.set_stage(stage);
  failure.set_check(absl::IsResourceExhausted(status) ? v1::CHECK_OUT_OF_MEMORY : v1::CHECK_FAULT);
  failure.set_message(std::string(status.message()));
  return failure;
}

absl::Status ValidateSizes(TrialRun& run, const BuiltVariant& built, const ValidationOptions& options) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  absl::StatusOr<Validation> validation = Validate(run.device, run.bundle, built, options);
  if (!validation.ok()) {
    const std::optional<v1::Failure> failure = ReferenceFailure(run, validation.status(), v1::STAGE_VALIDATE);
    if (!failure) return validation.status();
    run.Fail(*failure);
    return absl::OkStatus();
  }
  const std::vector<v1::OutputError>& errors = validation->errors[run.build.size];
  if (!errors.empty()) run.result().mutable_errors()->Assign(errors.begin(), errors.end());
  const std::vector<v1::ResourceUse>& resources = validation->resources[run.build.size];
  if (!resources.empty()) run.resources = resources;
  if (validation->failure) run.Fail(*validation->failure);
  return absl::OkStatus();
}

// The start variant at a size of the candidate's.
absl::StatusOr<const BuiltSize*> StartAt(TrialRun& run, const v1::Plan& plan) {
  const auto [known, fresh] = run.starts.try_emplace(plan.size());
  if (fresh) {
    v1::Size size;
    size.set_name(plan.size());
    *size.mutable_values() = plan.sizes();
    absl::StatusOr<BuiltVariant> built =
        BuildVariant(run.device.builder(), *run.build.before_edits, StartVariant(*run.build.before_edits), {size},
                     run.device.gpu(), run.device.stopped());
    if (!built.ok()) return built.status();
    if (!built->failure) known->second = built->sizes.front();
  }
  return known->second ? &*known->second : nullptr;
}

ValidationOptions OptionsFor(TrialRun& run, int repeats, InputVariety variety) {
  ValidationOptions options;
  options.repeats = repeats;
  options.small = run.build.small;
  options.inputs = run.inputs;
  options.variety = variety;
  if (run.build.parent) options.start = [&run](const v1::Plan& at) { return StartAt(run, at); };
  return options;
}

absl::Status ValidateAndReportEachSize(TrialRun& run, ValidationOptions options) {
  std::string at;
  absl::Time since = absl::Now();
  const auto ended = [&] {
    if (!at.empty()) run.validate_seconds[at] = absl::ToDoubleSeconds(absl::Now() - since);
  };
  options.report = [&](const std::string& size) {
    ended();
    at = size;
    since = absl::Now();
    run.Report(v1::STAGE_VALIDATE, absl::StrCat("validate at ", size));
  };
  const absl::Status status = ValidateSizes(run, run.build.candidate, options);
  ended();
  return status;
}

// Hidden sizes that were not drawn before.
absl::Status ValidateAtMoreSizes(TrialRun& run) {
  const std::vector<v1::Size> more = MoreHiddenSizes(run.bundle, SecretSeed());
  if (more.empty()) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> built = BuildVariant(run.device.builder(), run.bundle, run.build.candidate.variant, more,
                                                    run.device.gpu(), run.device.stopped());
  if (!built.ok()) return built.status();
  if (built->failure) {
    run.Fail(*built->failure);
    return absl::OkStatus();
  }
  ValidationOptions options = OptionsFor(run, 2, InputVariety::kEverywhere);
  options.small = more.size();
  return ValidateSizes(run, *built, options);
}

// Next to the size that is timed. Where the start variant is wrong there too, the bundle does not ask for it.
absl::Status ValidateBesideGoal(TrialRun& run) {
  v1::Size goal;
  goal.set_name(run.build.size);
  *goal.mutable_values() = run.build.at().plan.sizes();
  const std::optional<v1::Size> size = SizeBeside(run.bundle, goal, SecretSeed());
  if (!size) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> built = BuildVariant(run.device.builder(), run.bundle, run.build.candidate.variant,
                                                    {*size}, run.device.gpu(), run.device.stopped());
  if (!built.ok()) return built.status();
  ValidationOptions options;
  const auto validate = [&](const BuiltVariant& variant) { return Validate(run.device, run.bundle, variant, options); };
  std::optional<v1::Failure> failure = built->failure;
  if (!failure) {
    const StageWatch watch(run, v1::STAGE_VALIDATE);
    absl::StatusOr<Validation> validation = validate(*built);
    if (!validation.ok()) {  // of the reference: it need not know this size
      return ReferenceFailure(run, validation.status(), v1::STAGE_VALIDATE) ? absl::OkStatus() : validation.status();
    }
    failure = validation->failure;
  }
  if (!failure) return absl::OkStatus();
  absl::StatusOr<BuiltVariant> start =
      BuildVariant(run.device.builder(), *run.build.before_edits, StartVariant(*run.build.before_edits), {*size},
                   run.device.gpu(), run.device.stopped());
  if (!start.ok()) return start.status();
  if (start->failure) return absl::OkStatus();
  const absl::StatusOr<Validation> of_start = validate(*start);
  if (!of_start.ok()) return of_start.status();
  if (!of_start->failure) run.Fail(*failure);
  return absl::OkStatus();
}

absl::StatusOr<Timing> Time(TrialRun& run, const BuiltSize& candidate, const BuiltSize& parent,
                            const TimingOptions& options) {
  if (run.observer.stopped()) return absl::CancelledError("stopped");
  absl::StatusOr<Timing> timing = TimeAgainst(run.device, run.bundle, candidate, parent, options);
  if (absl::IsResourceExhausted(timing.status()) || (timing.ok() && timing->doubtful)) {
    // Once more in fresh processes: what others left behind does not count against a candidate.
    run.device.runner().Restart();
    run.device.reference().Restart();
    timing = TimeAgainst(run.device, run.bundle, candidate, parent, options);
  }
  if (timing.ok()) return timing;
  const std::optional<v1::Failure> failure = ReferenceFailure(run, timing.status(), v1::STAGE_MEASURE);
  if (!failure) return timing.status();
  Timing failed;
  failed.failure = failure;
  return failed;
}

// Whether the processes so far neither show that the parent is slower than it was as a candidate, nor exclude it.
bool SeatInDoubt(const TrialRun& run, const std::vector<TimedProcess>& processes) {
  const v1::SeatTime& as_candidate = run.build.trial.parent_as_candidate();
  std::vector<std::vector<double>> witnessed;
  for (const TimedProcess& process : processes) {
    std::vector<double> logs;
    for (const v1::PairSample& pair : process.pairs) {
      if (pair.witness_us() > 0) logs.push_back(std::log(pair.parent_us() / pair.witness_us()));
    }
    if (logs.size() > 1) witnessed.push_back(std::move(logs));
  }
  if (witnessed.empty()) return false;
  v1::SeatTime as_parent = SeatTimeOf(witnessed);
  as_parent.set_witness(as_candidate.witness());
  if (!ComparableSeats(as_candidate, as_parent)) return false;
  const double share = Gates::Default().Get(GateKind::kSeat).threshold / 2;
  const SeatTest test = TestSeat(as_candidate, as_parent, run.build.trial.noise(), share);
  return !test.failed() && !test.excluded;
}

// " at main" where there are several sizes.
std::string AtSize(const TrialRun& run, const std::string& size) {
  return run.sizes().size() > 1 ? absl::StrCat(" at ", size) : "";
}

// Adds a size's log ratios to the weighted mean over the sizes. Sizes have placements of their own, so that any of one
// may stand beside any of another.
void AddWeighted(const v1::BesideBaseline& beside, double weight, bool stands_for_all, v1::BesideBaseline* all) {
  if (stands_for_all) {
    all->set_baseline_us(beside.baseline_us());
    all->set_best_us(beside.best_us());
  }
  const bool first = all->log_ratios().empty();
  if (!first && beside.log_ratios_size() < all->log_ratios_size()) {
    all->mutable_log_ratios()->Truncate(beside.log_ratios_size());
  }
  for (int i = 0; i < beside.log_ratios_size(); ++i) {
    const double part = weight * beside.log_ratios(i);
    if (first) {
      all->add_log_ratios(part);
    } else if (i < all->log_ratios_size()) {
      all->set_log_ratios(i, all->log_ratios(i) + part);
    }
  }
}

// The ratio that was measured interleaved, in a row of times that has it.
void SetBaselineAt(const v1::BesideBaseline& beside, v1::TrialResult* result) {
  if (beside.log_ratios().empty()) return;
  double mean = 0;
  for (const double ratio : beside.log_ratios()) mean += ratio / beside.log_ratios_size();
  for (v1::SizeTime& time : *result->mutable_sizes()) {
    if (time.size() == beside.size()) time.set_baseline_us(time.best_us() * std::exp(mean));
  }
}

v1::Failure Unsteady(const v1::TrialResult& result) {
  v1::Failure failure;
  failure.set_stage(v1::STAGE_MEASURE);
  failure.set_check(v1::CHECK_UNSTEADY);
  failure.set_message(absl::StrCat("the GPU was unsteady in ", result.discarded(), " pairs: ",
                                   result.disturbances().empty() ? "is something else running on it, or is it too hot?"
                                                                 : absl::StrJoin(result.disturbances(), "; ")));
  return failure;
}

// The first pairs of one process at one size; those of a fresh one where some were thrown away.
absl::Status TimeFirstPairsAt(TrialRun& run, const std::string& size, const BuiltSize& parent) {
  const KeepRule rule;
  const BuiltSize& candidate = *run.build.candidate.Find(size);
  const auto unsteady = [&](const Timing& timing) { return timing.times.pairs_size() < rule.first_pairs; };
  absl::StatusOr<Timing> timing = Time(run, candidate, parent, {.pairs = rule.first_pairs});
  if (timing.ok() && !timing->failure && unsteady(*timing)) {
    run.device.runner().Restart();
    timing = Time(run, candidate, parent, {.pairs = rule.first_pairs});
  }
  if (!timing.ok()) return timing.status();
  const v1::CompareReply& times = timing->times;
  for (const v1::PairSample& pair : times.pairs()) {
    v1::PairSample& added = *run.result().add_pairs();
    added = pair;
    if (run.sizes().size() > 1) added.set_size(size);
  }
  run.result().set_discarded(run.result().discarded() + times.discarded());
  AddDisturbances({times.disturbances().begin(), times.disturbances().end()}, &run.result());
  SideTimes& at = run.times[size];
  at = {times.candidate_warm_us(), times.candidate_cold_us(), times.parent_warm_us(), times.parent_cold_us(),
        static_cast<size_t>(times.pairs_size())};
  if (size == run.build.size) {
    run.result().set_warm_us(at.warm_us);
    run.result().set_cold_us(at.cold_us);
    run.result().set_parent_warm_us(at.parent_warm_us);
    run.result().set_parent_cold_us(at.parent_cold_us);
  }
  if (timing->failure) {
    run.Fail(*timing->failure);
  } else if (unsteady(*timing)) {
    run.Fail(Unsteady(run.result()));
  }
  return absl::OkStatus();
}

// At each size of the goal. `alone`: against itself, otherwise against the parent.
absl::Status TimeFirstPairs(TrialRun& run, bool alone) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  for (const SizeWeight& size : run.sizes()) {
    run.Report(v1::STAGE_MEASURE,
               absl::StrCat(alone ? "time against itself" : "time beside the parent", AtSize(run, size.size)));
    const BuiltSize& parent = alone ? *run.build.candidate.Find(size.size) : run.build.ParentAt(size.size);
    if (absl::Status status = TimeFirstPairsAt(run, size.size, parent); !status.ok()) return status;
    if (run.failed()) return absl::OkStatus();
  }
  run.timed = true;
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseInputs(TrialRun& run) {
  run.inputs = DistributionsFor(run.bundle);
  if (!LeavesRangeOpen(run.bundle)) return absl::OkStatus();
  if (std::optional<InputMagnitudes> known = run.device.input_limits().Find(run.build.hash())) {
    run.inputs = *std::move(known);
    return absl::OkStatus();
  }
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  const bool is_start = !run.build.parent && !run.build.start;
  run.inputs.clear();
  if (!is_start && !run.build.start) return absl::OkStatus();
  absl::StatusOr<std::optional<FoundMagnitudes>> found =
      FindMagnitudes(run.device, run.bundle, is_start ? run.build.candidate : *run.build.start, run.build.small);
  if (absl::IsInvalidArgument(found.status()) || absl::IsResourceExhausted(found.status())) {
    return absl::OkStatus();  // the reference's fault: validating says so
  }
  if (!found.ok()) return found.status();
  if (!*found) return absl::OkStatus();  // so does this
  run.inputs = (*found)->magnitudes;
  if (is_start) run.Note((*found)->note);
  run.device.input_limits().Put(run.build.hash(), (*found)->magnitudes);
  return absl::OkStatus();
}

absl::Status ValidateTwice(TrialRun& run) {
  return ValidateAndReportEachSize(run, OptionsFor(run, 2, InputVariety::kSpread));
}

absl::Status ValidateStart(TrialRun& run) {
  ValidationOptions options = OptionsFor(run, 20, InputVariety::kEverywhere);
  options.self_test = true;
  return ValidateAndReportEachSize(run, options);
}

absl::Status ValidateAgain(TrialRun& run) {
  run.Report(v1::STAGE_VALIDATE, "validate 20 times with fresh inputs");
  if (absl::Status status = ValidateAtMoreSizes(run); !status.ok() || run.failed()) return status;
  if (absl::Status status = ValidateBesideGoal(run); !status.ok() || run.failed()) return status;
  return ValidateSizes(run, run.build.candidate, OptionsFor(run, 20, InputVariety::kEverywhere));
}

absl::Status ValidateSurprise(TrialRun& run) {
  const bool surprising = std::any_of(run.times.begin(), run.times.end(), [&](const auto& timed) {
    const SideTimes& times = timed.second;
    return DecidingUs(run.bundle, times.parent_warm_us, times.parent_cold_us) >
           kSurprise * DecidingUs(run.bundle, times.warm_us, times.cold_us);
  });
  if (!surprising) return absl::OkStatus();
  return ValidateAgain(run);
}

absl::Status CheckReference(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  const absl::StatusOr<std::vector<std::string>> blind = BlindInputs(run.device, run.bundle);
  if (blind.ok()) run.Note(BlindReferenceWarning(*blind));
  // A reference that does not run is for those steps to judge that need it.
  if (absl::IsInvalidArgument(blind.status()) || absl::IsResourceExhausted(blind.status())) return absl::OkStatus();
  return blind.status();
}

absl::Status CompareWithParent(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  const v1::Trial& trial = run.build.trial;
  const bool several = run.sizes().size() > 1;
  PairTimer timer;
  timer.protocol.sizes = InformativeFirst(run.sizes(), run.validate_seconds);
  timer.protocol.worst = several ? run.bundle.goal().worst() : 0;
  // What was kept before is measured whole.
  timer.protocol.stop_early = trial.purpose() != v1::TRIAL_PURPOSE_TOTAL && trial.purpose() != v1::TRIAL_PURPOSE_VERIFY;
  // Each process exchanges the seats of the one before it.
  const bool first_seat = std::random_device()() % 2 == 0;
  timer.time = [&](const std::string& size, int pairs, int process) {
    TimingOptions options{.pairs = pairs, .candidate_first = (process % 2 == 0) == first_seat};
    if (process > 0) {
      options.checked_calls = kConfirmingCalls;
      options.checked_bytes = kConfirmingBytes;
      options.least_checked = kLeastConfirmingCalls;
      if (run.build.witness && size == run.build.size) options.witness = &*run.build.witness;
    }
    return Time(run, *run.build.candidate.Find(size), run.build.ParentAt(size), options);
  };
  timer.doubted = [&](const std::vector<TimedProcess>& processes) { return SeatInDoubt(run, processes); };
  timer.start_fresh_process = [&] { run.device.runner().Restart(); };
  timer.report = [&](const std::string& size, int process) {
    run.Report(
        v1::STAGE_MEASURE,
        absl::StrCat(process > 0 ? "compare again in a fresh process" : "compare with the parent", AtSize(run, size)));
  };
  absl::StatusOr<TimedComparison> timed =
      CompareTimed(timer, run.bundle.timing(), trial.noise(), KeepRuleOf(trial.keep()));
  if (!timed.ok()) return timed.status();
  SetTimes(*timed, run.build.size, &run.result());
  for (const SizeWeight& size : run.sizes()) {
    if (const SideTimes times = TimesAt(*timed, size.size); times.pairs > 0) run.times[size.size] = times;
  }
  if (timed->failure) run.Fail(*timed->failure);
  run.timed = !timed->failure && !run.result().pairs().empty();
  run.faster = timed->comparison.result() == v1::FASTER;
  run.outcome.comparison = std::move(timed->comparison);
  return absl::OkStatus();
}

absl::Status TimeBesideParent(TrialRun& run) { return TimeFirstPairs(run, /*alone=*/false); }

absl::Status TimeAlone(TrialRun& run) { return TimeFirstPairs(run, /*alone=*/true); }

absl::Status CheckRoofline(TrialRun& run) {
  if (!run.timed) return absl::OkStatus();  // every pair was thrown away: there is no time
  const double share = run.build.trial.keep().floor() > 0 ? run.build.trial.keep().floor() : 1;
  for (const SizeWeight& size : run.sizes()) {
    const auto times = run.times.find(size.size);
    if (times == run.times.end()) continue;  // it was not worth timing there
    std::optional<v1::Failure> below =
        BelowRoofline(run.device.gpu().name(), run.bundle, run.build.candidate.Find(size.size)->plan,
                      times->second.warm_us, times->second.cold_us, share);
    if (!below) continue;
    below->set_size(size.size);
    run.Fail(*below);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status TimeLadder(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  run.Report(v1::STAGE_MEASURE, "time start and best at every size");
  for (const BuiltSize& start : run.build.parent_ladder) {
    const BuiltSize& best = *run.build.candidate.Find(start.plan.size());
    const auto add = [&](double start_us, double best_us) {
      v1::SizeTime* size = run.result().add_sizes();
      size->set_size(start.plan.size());
      size->set_start_us(start_us);
      size->set_best_us(best_us);
      size->set_start_bytes(MemoryOf(start.plan));
      size->set_best_bytes(MemoryOf(best.plan));
    };
    const auto compared = run.times.find(start.plan.size());
    if (run.sizes().size() > 1 && compared != run.times.end()) {  // better than it would be here
      const SideTimes& times = compared->second;
      add(DecidingUs(run.bundle, times.parent_warm_us, times.parent_cold_us),
          DecidingUs(run.bundle, times.warm_us, times.cold_us));
      continue;
    }
    absl::StatusOr<Timing> timing = Time(run, best, start, {.pairs = kLadderPairs});
    if (!timing.ok()) return timing.status();
    const v1::Check check = timing->failure ? timing->failure->check() : v1::CHECK_UNSPECIFIED;
    if (check == v1::CHECK_TIMED_OUTPUT || check == v1::CHECK_UNTOUCHED) {
      timing->failure->set_size(start.plan.size());
      run.Fail(*timing->failure);
      return absl::OkStatus();
    }
    if (timing->failure) {
      run.Note(absl::StrCat("not timed at ", start.plan.size(), ": ", timing->failure->message()));
      continue;
    }
    const v1::CompareReply& times = timing->times;
    if (times.pairs().empty()) continue;
    add(DecidingUs(run.bundle, times.parent_warm_us(), times.parent_cold_us()),
        DecidingUs(run.bundle, times.candidate_warm_us(), times.candidate_cold_us()));
  }
  return absl::OkStatus();
}

absl::Status SanitizeSmallSizes(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at small sizes");
  const v1::Trial& trial = run.build.trial;
  if (trial.keep().skip_sanitizer() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL) {
    run.Note("compute-sanitizer was left out, as the campaign asks");
    return absl::OkStatus();
  }
  if (!run.device.has_sanitizer()) {
    run.Note("compute-sanitizer is not installed here");
    return absl::OkStatus();
  }
  // The smallest of the ladder, and two hidden ones that nobody can foresee: the tools are slow.
  std::vector<const BuiltSize*> small;
  for (size_t i = 0; i < run.build.small; ++i) small.push_back(&run.build.candidate.sizes[i]);
  while (small.size() > 3) small.erase(small.begin() + SecretSeed() % (small.size() - 1));
  absl::StatusOr<Sanitizing> sanitizing = run.device.Sanitize(small, SanitizerTools::kAll);
  if (!sanitizing.ok()) return sanitizing.status();
  if (sanitizing->failure) {
    run.Fail(*sanitizing->failure);
  } else {
    run.result().set_sanitized(true);
  }
  return absl::OkStatus();
}

absl::Status SanitizeLargeSizes(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_VALIDATE);
  run.Report(v1::STAGE_VALIDATE, "compute-sanitizer at large sizes");
  if (!run.device.has_sanitizer()) return absl::OkStatus();  // the small sizes say so
  const BuiltSize* between = nullptr;
  for (const v1::Size& size : run.bundle.sizes()) {
    const BuiltSize* built = run.build.candidate.Find(size.name());
    if (built != nullptr && MemoryOf(built->plan) <= kSlowToolsBytes) between = built;
  }
  std::vector<std::pair<const BuiltSize*, SanitizerTools>> runs;
  for (const SizeWeight& size : run.sizes()) {
    runs.emplace_back(run.build.candidate.Find(size.size), SanitizerTools::kMemcheck);
  }
  runs.emplace_back(between, SanitizerTools::kRaceAndInit);
  for (const auto& [size, tools] : runs) {
    if (size == nullptr) continue;
    absl::StatusOr<Sanitizing> sanitizing = run.device.Sanitize({size}, tools);
    if (absl::IsDeadlineExceeded(sanitizing.status())) {
      run.Note(absl::StrCat(sanitizing.status().message(), " at ", size->plan.size()));
      continue;
    }
    if (!sanitizing.ok()) return sanitizing.status();
    if (!sanitizing->failure) continue;
    sanitizing->failure->set_size(size->plan.size());
    run.Fail(*sanitizing->failure);
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status ProfileCandidate(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_PROFILE);
  run.Report(v1::STAGE_PROFILE, "read counters");
  absl::StatusOr<Profiling> profiling = run.device.Profile({run.item()});
  if (!profiling.ok()) return profiling.status();
  if (!profiling->note.empty()) run.Note(profiling->note);
  v1::Evidence& evidence = *run.result().mutable_evidence();
  evidence = std::move(profiling->evidence[0]);
  evidence.set_partial_reason(ValidUtf8(evidence.partial_reason()));
  run.result().set_profiled(!evidence.partial());
  if (evidence.partial()) run.Note(absl::StrCat("no counters: ", evidence.partial_reason()));
  run.outcome.artifacts.push_back({v1::Blob::CUBIN, *run.build.at().cubin});
  if (!profiling->raw.empty()) run.outcome.artifacts.push_back({v1::Blob::NCU_REPORT, std::move(profiling->raw)});
  return absl::OkStatus();
}

absl::StatusOr<double> CopyBandwidth(GpuDevice& device) {
  v1::RunnerRequest copy;
  copy.mutable_copy()->set_bytes(kCopyBytes);
  absl::StatusOr<v1::RunnerReply> copied = device.runner().Ask(copy, kCopyDeadline);
  if (!copied.ok()) return copied.status();
  return copied->has_copy() ? copied->copy().gb_s() : 0;
}

absl::Status TimeCopy(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  const absl::StatusOr<double> gb_s = CopyBandwidth(run.device);
  if (!gb_s.ok()) return gb_s.status();
  run.result().set_copy_gb_s(*gb_s);
  return absl::OkStatus();
}

absl::Status TimeBaseline(TrialRun& run) {
  if (!HasBaseline(run.bundle)) return absl::OkStatus();
  const StageWatch watch(run, v1::STAGE_MEASURE);
  run.Report(v1::STAGE_MEASURE, "time the baseline");
  absl::StatusOr<std::vector<v1::BaselineTime>> times = run.device.TimeBaseline(run.bundle);
  if (absl::IsCancelled(times.status())) return times.status();
  if (absl::IsUnimplemented(times.status())) {
    run.Note(std::string(times.status().message()));
    return absl::OkStatus();
  }
  if (!times.ok()) {
    run.result().set_baseline_error(ValidUtf8(std::string(times.status().message())));
    return absl::OkStatus();
  }
  run.result().mutable_baselines()->Assign(times->begin(), times->end());
  for (const v1::BaselineTime& time : *times) {
    const BuiltSize* built = run.build.candidate.Find(time.size());
    if (built != nullptr) run.Note(BaselineBelowRoofline(run.device.gpu().name(), run.bundle, built->plan, time));
  }
  return absl::OkStatus();
}

absl::Status TimeBesideBaseline(TrialRun& run) {
  // A baseline is timed warm, which a kernel that is judged by its cold time is not compared with.
  if (!HasBaseline(run.bundle) || run.bundle.timing() == v1::TIMING_MODE_COLD) return absl::OkStatus();
  const StageWatch watch(run, v1::STAGE_MEASURE);
  run.Report(v1::STAGE_MEASURE, "time the baseline beside the best");
  v1::BesideBaseline all;  // of several sizes: the weighted mean of the log ratios of the placements
  for (const SizeWeight& size : run.sizes()) {
    absl::StatusOr<v1::BesideBaseline> beside =
        run.device.TimeBesideBaseline(run.bundle, *run.build.candidate.Find(size.size));
    if (absl::IsCancelled(beside.status())) return beside.status();
    if (!beside.ok()) {
      all.Clear();
      all.set_size(size.size);
      all.set_error(ValidUtf8(std::string(beside.status().message())));
      break;
    }
    if (run.sizes().size() == 1) {
      all = *std::move(beside);
      break;
    }
    AddWeighted(*beside, size.weight, size.size == run.build.size, &all);
    SetBaselineAt(*beside, &run.result());
  }
  *run.result().mutable_beside_baseline() = std::move(all);
  return absl::OkStatus();
}

absl::Status RunHandOff(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  run.Report(v1::STAGE_MEASURE, "build and run the hand-off");
  // It has the GPU's memory for itself.
  run.device.runner().UnloadAll();
  run.device.reference().UnloadAll();
  absl::StatusOr<std::vector<v1::HandOffCheck>> checks =
      run.device.CheckHandOff(run.bundle, run.build.trial.hand_off());
  if (!checks.ok()) return checks.status();
  run.result().mutable_hand_off()->Assign(checks->begin(), checks->end());
  return absl::OkStatus();
}

}  // namespace pawl
