// The steps of a trial that say how fast a variant is.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/names/utf8.h"
#include "kernels/data_type.h"
#include "kernels/plan.h"
#include "profiles/gates.h"
#include "profiles/seat_rule.h"
#include "worker/trial/roofline_check.h"
#include "worker/trial/timed_comparison.h"
#include "worker/trial/timer.h"
#include "worker/trial/trial_steps.h"
#include "worker/validate/provided_inputs.h"

namespace pawl {
namespace {

constexpr int64_t kCopyBytes = int64_t{1} << 30;
constexpr absl::Duration kCopyDeadline = absl::Seconds(30);
constexpr int kLadderPairs = 3;
constexpr double kLeastGraphUs = 50;

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
  const std::optional<v1::Failure> failure = run.ReferenceFailure(timing.status(), v1::STAGE_MEASURE);
  if (!failure) return timing.status();
  Timing failed;
  failed.failure = failure;
  return failed;
}

SeatPairs SeatPairsOf(const TrialRun& run, const std::vector<TimedProcess>& processes) {
  std::vector<std::vector<v1::PairSample>> pairs;
  for (const TimedProcess& process : processes) pairs.push_back(process.pairs);
  return SeatPairs(pairs, run.sizes(), run.build.size);
}

// Whether the processes so far neither show that the parent is slower than it was as a candidate, nor exclude it.
bool SeatInDoubt(const TrialRun& run, const std::vector<TimedProcess>& processes) {
  const v1::SeatTime& as_candidate = run.build.trial.parent_as_candidate();
  v1::SeatTime as_parent = SeatPairsOf(run, processes).Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
  as_parent.set_witness(as_candidate.witness());
  if (!ComparableSeats(as_candidate, as_parent)) return false;
  const double share = Gates::Default().Get(GateKind::kSeat).threshold / 2;
  const SeatTest test = TestSeat(as_candidate, as_parent, run.build.trial.noise(), share);
  return !test.failed() && !test.excluded;
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

// Whether a failure of timed calls is a variant's and not the machine's.
bool BlamesVariant(v1::Check check) {
  switch (check) {
    case v1::CHECK_TIMED_OUTPUT:
    case v1::CHECK_DETERMINISM:
    case v1::CHECK_UNTOUCHED:
    case v1::CHECK_INPUT_CHANGED:
    case v1::CHECK_FAULT:
    case v1::CHECK_WALL_CLOCK:
      return true;
    default:
      return false;
  }
}

struct ParentTimes {
  v1::SeatTime beside_witness, beside_anchor;
};

// The parent beside the witness, or else beside itself, in processes in which the candidate never was; `ways` says how,
// for each of the sizes. Processes differ by more than the pairs of one, so that few of these do, and one process where
// times are relative to the anchor, which varies more. Nothing: the trial has failed.
absl::StatusOr<std::optional<ParentTimes>> TimeParentAlone(TrialRun& run, const std::vector<v1::PairSample>& ways,
                                                           bool beside_witness) {
  const std::vector<SizeWeight> sizes = run.sizes();
  std::vector<SizeLogs> all, all_beside_anchor;
  for (const SizeWeight& size : sizes) all.push_back({size.weight, {}});
  all_beside_anchor = all;
  const int processes = beside_witness ? KeepRule().min_processes : 1;
  for (int process = 0; process < processes; ++process) {
    run.device.runner().Restart();
    for (size_t i = 0; i < sizes.size(); ++i) {
      const TimingOptions options = {.pairs = KeepRule().first_pairs,
                                     .candidate_first = process % 2 == 0,
                                     .single = ways[i].single(),
                                     .calls = ways[i].calls(),
                                     .data = ways[i].data()};
      const BuiltSize& parent = run.build.ParentAt(sizes[i].size);
      const BuiltSize& other = beside_witness ? *run.build.WitnessAt(sizes[i].size) : parent;
      absl::StatusOr<Timing> timing = Time(run, parent, other, options);
      const auto too_few = [&] { return timing->times.pairs_size() < KeepRule().first_pairs / 2; };
      if (timing.ok() && !timing->failure && too_few()) {  // once more, as every first process
        run.device.runner().Restart();
        timing = Time(run, parent, other, options);
      }
      if (!timing.ok()) return timing.status();
      if (timing->failure && !BlamesVariant(timing->failure->check())) {
        run.Fail(*timing->failure);
        return std::nullopt;
      }
      if (!timing->failure && too_few()) {
        run.result().set_discarded(run.result().discarded() + timing->times.discarded());
        AddDisturbances({timing->times.disturbances().begin(), timing->times.disturbances().end()}, &run.result());
        run.Fail(Unsteady(run.result()));
        return std::nullopt;
      }
      std::vector<double>& logs = all[i].processes.emplace_back();
      std::vector<double>& logs_beside_anchor = all_beside_anchor[i].processes.emplace_back();
      bool alike = true;
      for (const v1::PairSample& pair : timing->times.pairs()) {
        logs.push_back(std::log(pair.candidate_us() / pair.parent_us()));
        logs_beside_anchor.push_back(std::log(pair.candidate_us() / pair.anchor_us()));
        alike = alike && SameWay(pair, ways[i]);
      }
      if (!timing->failure && alike) continue;
      // Of the parent, which was validated before: it behaves in another way without the candidate, or now.
      v1::Failure failure;
      failure.set_stage(v1::STAGE_MEASURE);
      failure.set_check(v1::CHECK_SEAT);
      failure.set_size(sizes[i].size);
      failure.set_message(absl::StrCat(kParentNotTimed,
                                       timing->failure ? absl::StrCat(" (", timing->failure->message(), ")") : "",
                                       ": the comparison can't be believed"));
      run.Fail(failure);
      return std::nullopt;
    }
  }
  return ParentTimes{SeatTimeOf(all), SeatTimeOf(all_beside_anchor)};
}

// In how many calls of a graph the parent was timed as a candidate, by size. As long as a candidate has as many, its
// parent's times compare.
std::map<std::string, int> CallsOfParent(const TrialRun& run) {
  const std::vector<SizeWeight> sizes = run.sizes();
  std::vector<v1::PairSample> ways(sizes.size());
  std::map<std::string, int> calls;
  if (!SetCallsOfSizes(run.build.trial.parent_as_candidate(), ways)) return calls;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (!ways[i].single()) calls[sizes[i].size] = ways[i].calls();
  }
  return calls;
}

// Whether a graph of so many calls has become short: more calls would be timed better.
bool LacksCalls(const v1::CompareReply& times) {
  if (times.pairs().empty() || times.pairs(0).single() || times.pairs(0).calls() >= times.most_calls()) return false;
  const v1::PairSample& pair = times.pairs(0);
  return pair.calls() * std::min(pair.candidate_us(), pair.parent_us()) < kLeastGraphUs;
}

// How the parent was timed as a candidate, for each size; none where that can't be told, or not be done again.
std::vector<v1::PairSample> WaysAsCandidate(TrialRun& run, const SeatPairs& beside, const v1::SeatTime& as_parent) {
  const v1::SeatTime& as_candidate = run.build.trial.parent_as_candidate();
  const bool fills = as_candidate.data() == 0 && as_parent.data() == 0;
  if (!fills && !IsOwnData(run.device.pools(), as_candidate.data())) return {};
  if (as_candidate.protocol() != as_parent.protocol()) return {};
  std::vector<v1::PairSample> ways;
  for (size_t i = 0; i < run.sizes().size(); ++i) {
    ways.push_back(beside.LikeAll(i));
    ways.back().set_data(as_candidate.data());
  }
  v1::SeatTime now = as_parent;
  now.set_data(as_candidate.data());
  if (WayOf(now) != WayOf(as_candidate) && !SetCallsOfSizes(as_candidate, ways)) return {};
  return ways;
}

// Where calls are timed in another way beside the candidate than when the parent was one, its time then says nothing:
// it is timed in this way without the candidate. A parent without a witness has its time relative to the anchor only,
// which may be another with other inputs of problem.py. It is also timed once more as it was as a candidate, with the
// same inputs: it may have become slower meanwhile.
absl::Status TimeParentWithout(TrialRun& run, const std::vector<TimedProcess>& beside_candidate) {
  const v1::Trial& trial = run.build.trial;
  const v1::SeatTime& as_candidate = trial.parent_as_candidate();
  const SeatPairs beside = SeatPairsOf(run, beside_candidate);
  const v1::SeatTime as_parent = beside.Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
  const v1::SeatTime beside_anchor = beside.Time(&v1::PairSample::parent_us, &v1::PairSample::anchor_us);
  const bool has_witness = as_candidate.processes() > 0 && as_parent.processes() > 0;
  const bool may_keep = (trial.purpose() == v1::TRIAL_PURPOSE_ITERATION || trial.purpose() == v1::TRIAL_PURPOSE_END) &&
                        beside_candidate.size() > 1;
  const bool lacks_time = has_witness ? !TimedAlike(as_candidate, as_parent) : may_keep && beside_anchor.data() != 0;
  if (!lacks_time) return absl::OkStatus();
  std::vector<v1::PairSample> ways;
  for (size_t i = 0; i < run.sizes().size(); ++i) ways.push_back(beside.LikeAll(i));
  absl::StatusOr<std::optional<ParentTimes>> alone = TimeParentAlone(run, ways, has_witness);
  if (!alone.ok() || !*alone) return alone.status();
  if (has_witness) {
    *run.result().mutable_parent_alone() = (*alone)->beside_witness;
    SetWay(as_parent, run.result().mutable_parent_alone());
  }
  if (beside_anchor.data() != 0) {
    *run.result().mutable_parent_alone_beside_anchor() = (*alone)->beside_anchor;
    SetWay(beside_anchor, run.result().mutable_parent_alone_beside_anchor());
  }
  ways = has_witness ? WaysAsCandidate(run, beside, as_parent) : std::vector<v1::PairSample>();
  if (ways.empty()) return absl::OkStatus();
  absl::StatusOr<std::optional<ParentTimes>> again = TimeParentAlone(run, ways, /*beside_witness=*/true);
  if (!again.ok() || !*again) return again.status();
  *run.result().mutable_parent_again() = (*again)->beside_witness;
  SetWay(as_candidate, run.result().mutable_parent_again());
  return absl::OkStatus();
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

absl::Status CompareWithParent(TrialRun& run) {
  const StageWatch watch(run, v1::STAGE_MEASURE);
  const v1::Trial& trial = run.build.trial;
  const bool several = run.sizes().size() > 1;
  PairTimer timer;
  timer.protocol.sizes = InformativeFirst(run.sizes(), run.validate_seconds);
  timer.protocol.worst = several ? GoalOf(trial, run.bundle).worst() : 0;
  // What was kept before is measured whole.
  timer.protocol.stop_early = trial.purpose() != v1::TRIAL_PURPOSE_TOTAL && trial.purpose() != v1::TRIAL_PURPOSE_VERIFY;
  if (several && timer.protocol.stop_early) timer.protocol.whole = run.build.size;
  // Each process exchanges the seats of the one before it.
  const bool first_seat = std::random_device()() % 2 == 0;
  ChecksOfComparison checks;
  std::map<std::string, int> calls = CallsOfParent(run);  // of a graph, by size: as many in every process
  std::map<std::string, double> call_us;                  // of the slowest side, by size
  std::set<std::string> settled;                          // sizes at which that is the number: it was timed there
  const bool has_problem = HasProblem(run.bundle);
  const std::vector<SizeWeight> sizes = run.sizes();
  const bool quick = std::all_of(sizes.begin(), sizes.end(), [&](const SizeWeight& size) {
    return IsQuickToMake(run.device, run.bundle, run.build.candidate.Find(size.size)->plan);
  });
  // Who knows inputs could have the answers to them in a candidate's code. One process has inputs of problem.py that no
  // candidate had before: the first, or, where making them takes long, the second. Those after it have inputs with
  // which only what was about to be kept was timed, and its parent as well: its times compare.
  const int with_fresh_inputs = quick ? 0 : 1;
  const uint32_t fresh = has_problem ? NewData(run.device.pools()) : 0;
  const std::string& module = run.build.candidate.Find(run.build.size)->module;
  KeepRule rule = RuleOf(trial);
  // How slow a step of an expedition is counts for the next one, and a leg has a goal of its own.
  if (trial.purpose() == v1::TRIAL_PURPOSE_ITERATION && !trial.step() && !several && !trial.has_goal()) {
    rule.sure_pairs = kSurePairs;
  }
  if (has_problem && rule.max_processes > 1) {
    rule.min_processes = with_fresh_inputs + 2;
    RenewSeatData(run.device.pools(), run.bundle, {module, run.build.ParentAt(run.build.size).module});
  }
  const uint32_t of_seat = has_problem ? SeatData(run.device.pools(), run.bundle) : 0;
  // What is confirmed is likely to be validated again.
  const bool builds_further = !trial.step() && trial.purpose() != v1::TRIAL_PURPOSE_TOTAL;
  timer.time = [&](const std::string& size, int pairs, int process) {
    TimingOptions options = checks.Options(size, pairs, process);
    options.calls = calls[size];
    options.call_us = call_us[size];
    if (process > 0 && builds_further) BuildFurther(run);
    if (process > 0) {
      options.inputs = &run.inputs;
      options.start = [&run](const v1::Plan& at) { return StartAt(run, at); };
    }
    options.candidate_first = (process % 2 == 0) == first_seat;
    if (process > 0) options.witness = run.build.WitnessAt(size);
    if (process >= with_fresh_inputs) options.data = process == with_fresh_inputs ? fresh : of_seat;
    if (has_problem && process > with_fresh_inputs) SeeSeatData(run.device.pools(), run.bundle, module);
    const bool first = settled.insert(size).second;
    if (first && rule.sure_pairs > 0) {
      options.sure_pairs = rule.sure_pairs;
      options.sure_below = SureBelow(trial.noise(), rule);
    }
    const auto time = [&] { return Time(run, *run.build.candidate.Find(size), run.build.ParentAt(size), options); };
    absl::StatusOr<Timing> timing = time();
    const bool warm = run.bundle.timing() != v1::TIMING_MODE_COLD;
    if (first && options.calls > 0 && warm && timing.ok() && !timing->failure && LacksCalls(timing->times)) {
      options.calls = 0;
      timing = time();
    }
    if (!timing.ok()) return timing;
    checks.Add(size, process, *timing);
    for (const v1::PairSample& pair : timing->times.pairs()) {
      call_us[size] = std::max({call_us[size], pair.parent_us(), pair.candidate_us(), pair.witness_us()});
    }
    if (!timing->times.pairs().empty()) calls[size] = timing->times.pairs(0).calls();
    return timing;
  };
  timer.doubted = [&](const std::vector<TimedProcess>& processes) { return SeatInDoubt(run, processes); };
  timer.start_fresh_process = [&] { run.device.runner().Restart(); };
  timer.report = [&](const std::string& size, int process) {
    run.Report(
        v1::STAGE_MEASURE,
        absl::StrCat(process > 0 ? "compare again in a fresh process" : "compare with the parent", AtSize(run, size)));
  };
  absl::StatusOr<TimedComparison> timed = CompareTimed(timer, run.bundle.timing(), trial.noise(), rule);
  if (!timed.ok()) return timed.status();
  SetTimes(*timed, run.build.size, &run.result());
  for (const SizeWeight& size : run.sizes()) {
    if (const SideTimes times = TimesAt(*timed, size.size); times.pairs > 0) run.times[size.size] = times;
  }
  if (timed->failure) run.Fail(*timed->failure);
  run.timed = !timed->failure && !run.result().pairs().empty();
  run.faster = timed->comparison.result() == v1::FASTER;
  run.outcome.comparison = std::move(timed->comparison);
  return run.faster ? TimeParentWithout(run, timed->processes) : absl::OkStatus();
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
      size->set_start_bytes(PlanBytes(start.plan));
      size->set_best_bytes(PlanBytes(best.plan));
    };
    const auto compared = run.times.find(start.plan.size());
    if (run.sizes().size() > 1 && compared != run.times.end()) {  // better than it would be here
      const SideTimes& times = compared->second;
      add(run.DecidingUs(times.parent_warm_us, times.parent_cold_us), run.DecidingUs(times.warm_us, times.cold_us));
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
    add(run.DecidingUs(times.parent_warm_us(), times.parent_cold_us()),
        run.DecidingUs(times.candidate_warm_us(), times.candidate_cold_us()));
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
  device.Settle();
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
  run.device.runner().EndSpare();
  run.device.runner().UnloadAll();
  run.device.reference().UnloadAll();
  absl::StatusOr<std::vector<v1::HandOffCheck>> checks =
      run.device.CheckHandOff(run.bundle, run.build.trial.hand_off());
  if (!checks.ok()) return checks.status();
  run.result().mutable_hand_off()->Assign(checks->begin(), checks->end());
  return absl::OkStatus();
}

}  // namespace pawl
