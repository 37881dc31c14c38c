#include "orchestrator/engine/verdict/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/hash/hash.h"
#include "base/revision/revision.h"
#include "kernels/variable_values.h"
#include "orchestrator/engine/state/noise_pool.h"
#include "orchestrator/engine/verdict/seat.h"
#include "profiles/keep_rule.h"

namespace pawl {
namespace {

constexpr double kMaxDeviation = 0.10;  // of a verification, relative to the recorded value

// From the samples alone; the worker's own comparison is ignored.
v1::Comparison CompareSamples(const CampaignState& campaign, const v1::TrialResult& result,
                              const v1::TrialPlanned& planned, const KeepRule& rule) {
  const std::vector<SizePairs> sizes = SizePairsOf(result, campaign.goal_sizes(), campaign.goal().size());
  v1::Comparison comparison = CompareSizes(sizes, planned.noise(), rule);
  const auto timed =
      std::count_if(sizes.begin(), sizes.end(), [](const SizePairs& size) { return !size.processes.empty(); });
  comparison.set_discarded(result.discarded() + result.confirming_discarded());  // also where no pair was left
  if (comparison.discarded() >= rule.max_discarded * std::max<int64_t>(1, timed) && !result.disturbances().empty()) {
    comparison.set_reason(absl::StrCat("Unclear: ", comparison.discarded(),
                                       " pairs were discarded: ", absl::StrJoin(result.disturbances(), "; ")));
  }
  // A worker that lacks pairs of a process has not found it faster, and has left out what comes before a keep.
  const bool step = planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && planned.expedition();
  const bool to_keep =
      (planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && !step) || planned.purpose() == v1::TRIAL_PURPOSE_END;
  if (to_keep && comparison.result() == v1::FASTER && !result.checked_to_keep()) {
    comparison.set_result(v1::UNCLEAR);
    comparison.set_reason(
        absl::StrCat("Unclear: the worker could not confirm it, and left out the checks before a keep",
                     result.disturbances().empty() ? "" : ": ", absl::StrJoin(result.disturbances(), "; ")));
  }
  return comparison;
}

// A step of an expedition is judged by one process: JudgeEnd says whether it is kept. The worker ends a comparison with
// few pairs in the same cases only (CompareWithParent).
KeepRule RuleOf(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  const v1::KeepSettings& keep = campaign.summary().spec().keep();
  const bool iteration = planned.purpose() == v1::TRIAL_PURPOSE_ITERATION;
  if (iteration && planned.expedition()) return StepRuleOf(keep);
  KeepRule rule = KeepRuleOf(keep);
  if (iteration && campaign.leg() == 0 && campaign.goal_sizes().size() == 1) rule.sure_pairs = kSurePairs;
  return rule;
}

void SetNumber(const CampaignState& campaign, int number, v1::Iteration* iteration) {
  iteration->set_name(absl::StrCat(campaign.summary().name(), "/iterations/", number));
  iteration->set_number(number);
}

// What was proposed as the start is iteration 0 if it is kept: its source is the campaign's own then. Otherwise it is a
// rejected change with the next number, and iteration 0 stays free.
void NumberStart(const CampaignState& campaign, const v1::TrialPlanned& planned, v1::Iteration* iteration) {
  if (planned.bundle_hash().empty()) return;
  if (iteration->verdict() == v1::KEPT) {
    iteration->clear_patched_source_hash();
  } else {
    SetNumber(campaign, campaign.next_iteration(), iteration);
  }
}

v1::Iteration Begin(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  v1::Iteration iteration;
  SetNumber(campaign, planned.iteration(), &iteration);
  if (planned.has_parent()) iteration.set_parent(planned.parent());
  *iteration.mutable_variant() = planned.variant().values();
  *iteration.mutable_words() = WordsOf(campaign.BundleAt(planned.iteration()), planned.variant().values());
  if (planned.has_change()) *iteration.mutable_change() = planned.change();
  // A patch may be long; the plan has it, and the source is stored by its hash.
  if (iteration.change().has_source()) iteration.mutable_change()->mutable_source()->clear_patch();
  if (planned.has_finding()) *iteration.mutable_finding() = planned.finding();
  if (planned.has_prediction()) *iteration.mutable_prediction() = planned.prediction();
  if (planned.has_effect()) *iteration.mutable_effect() = planned.effect();
  if (planned.has_score()) *iteration.mutable_score() = planned.score();
  *iteration.mutable_findings() = planned.findings();
  *iteration.mutable_passed_over() = planned.passed_over();
  if (campaign.SourceIdOf(planned.iteration()) > 0) {
    iteration.set_patched_source_hash(Sha256(campaign.SourceOf(planned.iteration())));
  }
  iteration.set_leg(campaign.leg());
  iteration.set_author(planned.author());
  iteration.set_why(planned.why());
  iteration.set_expedition(planned.expedition());
  return iteration;
}

bool Cold(const v1::Bundle& bundle) { return bundle.timing() == v1::TIMING_MODE_COLD; }

// Only the start is timed next to the baseline. Baselines are timed warm, so they are not compared with a kernel that
// is judged by its cold time.
double BaselineUs(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result) {
  if (Cold(campaign.bundle())) return 0;
  if (planned.has_parent()) return campaign.summary().baseline_us();
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (baseline.size() == campaign.goal().size()) return baseline.graph_us();
  }
  return 0;
}

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Of a call at one size: the mean over processes of the medians, over those that confirmed where there are such.
void SetTimesAt(const v1::TrialResult& result, const std::string& trial_size, v1::SizeComparison* at) {
  const std::vector<std::vector<v1::PairSample>> processes = PairsByProcess(result, at->size(), trial_size);
  const size_t first = processes.size() > 1 ? 1 : 0;
  const double share = 1 / static_cast<double>(std::max<size_t>(1, processes.size() - first));
  double time = 0, parent = 0;
  for (size_t i = first; i < processes.size(); ++i) {
    std::vector<double> candidates, parents;
    for (const v1::PairSample& pair : processes[i]) {
      candidates.push_back(pair.candidate_us());
      parents.push_back(pair.parent_us());
    }
    time += share * MedianOf(std::move(candidates));
    parent += share * MedianOf(std::move(parents));
  }
  at->set_time_us(time);
  at->set_parent_time_us(parent);
}

// What was measured at each size of a goal over several. The start has times only.
void SetSizes(const CampaignState& campaign, const v1::TrialResult& result, const v1::TrialPlanned& planned,
              const KeepRule& rule, v1::Iteration* iteration) {
  if (!HasSeveralSizes(campaign.summary().spec().goal())) return;
  for (const SizePairs& size : SizePairsOf(result, campaign.goal_sizes(), campaign.goal().size())) {
    if (size.processes.empty()) continue;
    v1::SizeComparison& at = *iteration->add_sizes();
    at.set_size(size.size);
    at.set_weight(size.weight);
    SetTimesAt(result, campaign.goal().size(), &at);
    if (planned.has_parent()) {
      *at.mutable_interval() = Compare(size.processes, planned.noise(), rule);
    } else {
      at.clear_parent_time_us();
    }
  }
}

// Its parent was the best variant when it was planned, and with several workers another has been kept since.
bool Overtaken(const CampaignState& campaign, const v1::TrialPlanned& planned) {
  const auto open = campaign.open_trials().find(planned.trial());
  return planned.has_parent() && open != campaign.open_trials().end() && open->second.best == planned.parent() &&
         campaign.best()->number() != planned.parent();
}

// It was kept by a comparison with this parent, at the sizes of this leg.
bool KeptBeside(const CampaignState& campaign, const v1::Iteration& iteration, int parent) {
  return iteration.verdict() == v1::KEPT && iteration.has_parent() && iteration.parent() == parent &&
         iteration.leg() == campaign.leg() && !iteration.has_over_best();
}

// A change of the same parent that was kept and gained at least as much; null: none.
const v1::Iteration* BetterInRound(const CampaignState& campaign, const v1::Iteration& iteration) {
  for (const v1::Iteration& other : campaign.iterations()) {
    if (KeptBeside(campaign, other, iteration.parent()) &&
        other.speedup_over_parent() >= iteration.speedup_over_parent()) {
      return &other;
    }
  }
  return nullptr;
}

// A failed gate changes a kept iteration's verdict.
void Demote(v1::Iteration* iteration, v1::Verdict verdict) {
  if (iteration->verdict() != v1::KEPT) return;
  iteration->set_verdict(verdict);
  iteration->set_reason(absl::StrCat(iteration->reason(), "; but ", iteration->failed_gates().rbegin()->text()));
}

// "the prediction of bank-conflicts failed: 1.02x over the parent (predicted 1.10x to 1.50x), conflicts 3 -> 3".
std::string FailedPredictionText(const v1::Iteration& iteration) {
  const v1::Prediction& prediction = iteration.prediction();
  std::vector<std::string> failed;
  if (prediction.time_outcome() == v1::Prediction::FAILED) {
    failed.push_back(absl::StrFormat("%.2fx over the parent (predicted %.2fx to %.2fx)",
                                     iteration.speedup_over_parent(), prediction.low(), prediction.high()));
  }
  if (prediction.metric_outcome() == v1::Prediction::FAILED) {
    failed.push_back(absl::StrFormat("%s went from %.4g to %.4g (predicted to %s)", prediction.metric(),
                                     prediction.before(), prediction.after(),
                                     prediction.direction() == v1::DIRECTION_MORE   ? "rise"
                                     : prediction.direction() == v1::DIRECTION_LESS ? "fall"
                                                                                    : "change"));
  }
  const std::string of = iteration.has_finding() ? absl::StrCat(" of ", iteration.finding().rule()) : "";
  return absl::StrCat("the prediction", of, " failed: ", absl::StrJoin(failed, "; "));
}

void FailGate(v1::Iteration* iteration, const Gate& gate, double value, const std::string& text) {
  *iteration->add_failed_gates() = gate.Failed(value, text);
}

// Whether a size lost more than the goal's `worst` allows of the best speed that was kept there: the estimate is below
// it, and that there is a loss at all is beyond doubt. Looks at what is not faster in all, too: the reason is the
// better one.
void CheckWorst(const CampaignState& campaign, const Gates& gates, v1::Iteration* iteration) {
  const double worst = campaign.goal().worst();
  if (!(worst > 0) || iteration->sizes().empty() || !iteration->has_parent()) return;
  const Gate& gate = gates.Get(GateKind::kWorstSize);
  const v1::SizeComparison* most = nullptr;
  double least = std::log(worst);
  for (const v1::SizeComparison& size : iteration->sizes()) {
    const std::optional<double> parent = campaign.LogSpeedAt(iteration->parent(), size.size());
    if (!parent || size.interval().pairs() == 0) continue;
    const double behind = *parent - campaign.BestLogSpeedAt(size.size());
    const double share = size.interval().mean_log_ratio() + behind;
    if (share >= least || size.interval().upper() + behind >= 0) continue;
    most = &size;
    least = share;
  }
  if (most == nullptr) return;
  const std::string text =
      absl::StrFormat("at %s it has %.1f %% of the best speed kept there (the goal's worst allows no less than %g %%)",
                      most->size(), 100 * std::exp(least), 100 * worst);
  FailGate(iteration, gate, std::exp(least), text);
  if (iteration->verdict() == v1::KEPT) {
    Demote(iteration, v1::REVERTED);
  } else {
    iteration->set_reason(absl::StrCat(iteration->reason(), "; ", text));
  }
}

// All gates except those of failures (see Judge) and min-gain, which the comparison checks.
void CheckGates(const Gates& gates, double baseline_us, double expected_us, const std::string& baseline_error,
                v1::Iteration* iteration) {
  const Gate& baseline = gates.Get(GateKind::kBaseline);
  const bool off = expected_us > 0 && std::abs(baseline_us / expected_us - 1) > baseline.threshold;
  if (iteration->number() == 0 && (off || !baseline_error.empty())) {
    FailGate(
        iteration, baseline, off ? baseline_us / expected_us - 1 : 0,
        !baseline_error.empty()
            ? absl::StrCat("the baseline failed, so speedups would be over the start only: ", baseline_error)
            : absl::StrFormat("the baseline takes %.3f us (expected %.3f us): its build or the machine has changed",
                              baseline_us, expected_us));
    if (baseline.action == v1::GATE_ACTION_REJECT) Demote(iteration, v1::REJECTED);
  }
  const Gate& prediction = gates.Get(GateKind::kPrediction);
  if (iteration->prediction().outcome() == v1::Prediction::FAILED) {
    FailGate(iteration, prediction, iteration->speedup_over_parent(), FailedPredictionText(*iteration));
    if (prediction.action != v1::GATE_ACTION_MARK) Demote(iteration, v1::REVERTED);
  }
  if (iteration->verdict() != v1::KEPT || iteration->profiled()) return;
  for (const GateKind kind : {GateKind::kProfileFirst, GateKind::kProfile}) {
    const Gate& gate = gates.Get(kind);
    if (iteration->speedup_over_baseline() >= gate.threshold) continue;
    FailGate(iteration, gate, iteration->speedup_over_baseline(),
             absl::StrFormat("at %.2fx the baseline's speed the variant should be profiled before it is changed; the "
                             "next change is chosen from timing and compiler output only",
                             iteration->speedup_over_baseline()));
  }
}

// Why what is left of a gain, without what the parent was slowed down by beside the candidate, is too little; empty: it
// is enough. Both are over all sizes of the goal.
std::string TooLittleBesides(const CampaignState& campaign, const v1::TrialPlanned& planned,
                             const v1::Iteration& iteration, double gain, const KeepRule& rule) {
  const double slowdown = SlowdownBesideWitness(campaign, iteration, planned.noise());
  if (slowdown == 0 || gain - slowdown > std::log1p(rule.min_gain)) return "";
  return absl::StrFormat(
      "beside it the parent took %.1f %% longer than before, relative to an earlier variant: "
      "without that the gain would be %+.1f %% (it must exceed %g %%)",
      100 * std::expm1(slowdown), 100 * std::expm1(gain - slowdown), 100 * rule.min_gain);
}

// A candidate that was faster than a parent whose times can't be believed, or that has been taken back meanwhile.
void CheckParent(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::Iteration& parent,
                 const Gates& gates, v1::Iteration* iteration) {
  if (iteration->verdict() != v1::KEPT) return;
  if (parent.verdict() == v1::REJECTED || (parent.verdict() == v1::REVERTED && !iteration->expedition())) {
    iteration->set_verdict(v1::REVERTED);
    iteration->set_reason(
        absl::StrCat(iteration->reason(), "; but its parent, iteration ", parent.number(), ", was taken back"));
    return;
  }
  const Gate& gate = gates.Get(GateKind::kSeat);
  std::optional<std::string> wrong = SlowedParent(campaign, *iteration, planned.noise(), gate.threshold);
  const std::vector<v1::RevisedIteration> revised = RevisedBySeat(campaign, *iteration, planned.noise(), gates);
  if (!revised.empty()) wrong = absl::StrCat("its parent is rejected: ", revised[0].failure().message());
  if (!wrong) {
    const std::string little = TooLittleBesides(campaign, planned, *iteration, iteration->interval().mean_log_ratio(),
                                                RuleOf(campaign, planned));
    if (little.empty()) return;
    iteration->set_verdict(v1::REVERTED);
    iteration->set_reason(absl::StrCat(iteration->reason(), "; but ", little));
    iteration->set_parent_slowed(true);
    return;
  }
  FailGate(iteration, gate, 0, *wrong);
  Demote(iteration, v1::REJECTED);
  iteration->mutable_failure()->set_stage(v1::STAGE_MEASURE);
  iteration->mutable_failure()->set_check(v1::CHECK_SEAT);
  iteration->mutable_failure()->set_message(*wrong);
}

// Nothing was measured, and nothing could be gained.
void JudgeSameCode(const CampaignState& campaign, const v1::Iteration& parent, v1::Iteration* iteration) {
  iteration->set_verdict(v1::REVERTED);
  iteration->set_comparison(v1::SAME);
  iteration->set_reason("the same machine code and launches as its parent: there is nothing to measure");
  iteration->mutable_interval()->set_result(v1::SAME);
  iteration->mutable_interval()->set_reason(iteration->reason());
  iteration->set_time_us(parent.time_us());
  iteration->set_parent_time_us(parent.time_us());
  iteration->set_speedup_over_parent(1);
  const double speedup = campaign.SpeedupOf(parent);
  const bool same_leg = parent.leg() == campaign.leg();
  iteration->set_speedup_over_start(speedup);
  iteration->set_speedup_over_baseline(same_leg ? parent.speedup_over_baseline()
                                                : speedup * campaign.BaselineOverStart());
  // At the sizes of this leg only: at others of the parent's, the code of both was not compared.
  for (const SizeWeight& at : campaign.goal_sizes()) {
    const auto of_parent = std::find_if(parent.sizes().begin(), parent.sizes().end(),
                                        [&](const v1::SizeComparison& one) { return one.size() == at.size; });
    if (of_parent == parent.sizes().end()) continue;
    v1::SizeComparison& size = *iteration->add_sizes();
    size.set_size(at.size);
    size.set_weight(at.weight);
    size.set_time_us(of_parent->time_us());
    size.set_parent_time_us(of_parent->time_us());
    size.mutable_interval()->set_result(v1::SAME);
    if (same_leg || at.size != campaign.goal().size()) continue;
    iteration->set_time_us(of_parent->time_us());
    iteration->set_parent_time_us(of_parent->time_us());
  }
}

// The GPU left nothing that a verdict could follow from.
void JudgeUnsteady(const std::string& reason, const v1::TrialResult& result, const Gates& gates,
                   v1::Iteration* iteration) {
  FailGate(iteration, gates.For(v1::CHECK_UNSTEADY), 0, reason);
  const bool rejects = gates.For(v1::CHECK_UNSTEADY).action == v1::GATE_ACTION_REJECT;
  iteration->set_verdict(rejects ? v1::REJECTED : v1::REVERTED);
  iteration->set_comparison(v1::UNCLEAR);
  iteration->set_reason(reason);
  iteration->mutable_interval()->set_result(v1::UNCLEAR);
  iteration->mutable_interval()->set_reason(reason);
  iteration->mutable_interval()->set_discarded(result.discarded() + result.confirming_discarded());
}

// What iteration 0 timed of the baseline, at those sizes at which it was not timed beside the best.
void SetBaselines(const CampaignState& campaign, v1::TotalGain* total) {
  if (Cold(campaign.bundle())) return;
  for (v1::SizeTime& size : *total->mutable_sizes()) {
    for (const v1::BaselineTime& baseline : campaign.baselines()) {
      const bool here = baseline.size() == size.size() && size.baseline_us() == 0;
      if (here) size.set_baseline_us(baseline.graph_us());
    }
  }
}

// At the goal's size the pairs that gave the ratio also give the two times: the ladder's are of another moment.
void SetPairedTimes(const CampaignState& campaign, const v1::TrialResult& result, v1::TotalGain* total) {
  if (campaign.goal_sizes().size() > 1) return;  // the worker took them from the pairs of each size
  double sum = 0;
  for (const v1::PairSample& pair : result.pairs()) sum += std::log(pair.candidate_us());
  const double best_us = std::exp(sum / result.pairs_size());
  if (!(best_us > 0) || !std::isfinite(best_us)) return;
  for (v1::SizeTime& size : *total->mutable_sizes()) {
    if (size.size() != campaign.goal().size()) continue;
    size.set_best_us(best_us);
    size.set_start_us(best_us * total->speedup_over_start());
  }
}

// Of the first process's pairs, weighted as the iteration was over its sizes.
double MeanLogRatio(const v1::Iteration& recorded, const v1::TrialResult& result) {
  std::vector<SizeWeight> sizes;
  for (const v1::SizeComparison& size : recorded.sizes()) sizes.push_back({size.size(), size.weight()});
  if (sizes.empty()) sizes.push_back({"", 1});
  double sum = 0, weights = 0;
  for (const SizeWeight& size : sizes) {
    double of_size = 0;
    int pairs = 0;
    for (const v1::PairSample& pair : result.pairs()) {
      if (!pair.size().empty() && pair.size() != size.size) continue;
      of_size += pair.log_ratio();
      ++pairs;
    }
    if (pairs == 0) continue;
    sum += size.weight * of_size / pairs;
    weights += size.weight;
  }
  return weights > 0 ? sum / weights : 0;
}

// What was faster than its parent, where that is not the best variant, is kept only if it is faster than that, too.
void AwaitComparison(const CampaignState& campaign, v1::Iteration* iteration) {
  const v1::Iteration& best = *campaign.best();
  const double of_best = iteration->speedup_over_start() / campaign.SpeedupOf(best);
  const bool compared = of_best > 1 + KeepRuleOf(campaign.summary().spec().keep()).min_gain;  // see UncomparedEnd
  iteration->set_verdict(v1::REVERTED);
  iteration->set_reason(absl::StrFormat("%s; %s, at about %.3fx the speed of the best variant (iteration %d)%s",
                                        iteration->reason(),
                                        iteration->expedition() ? "an expedition" : "another was kept meanwhile",
                                        of_best, best.number(), compared ? ": it is compared with that next" : ""));
  if (!iteration->expedition() && compared) iteration->set_compared_with(best.number());
  iteration->set_expedition(true);
}

// The iteration and all kept iterations that descend from it, or were kept for being faster than one of these.
std::vector<int> BuiltOn(const CampaignState& campaign, int iteration) {
  const std::set<int> descend = campaign.BuiltOn(iteration);
  std::vector<int> built = {iteration};
  for (const v1::Iteration& other : campaign.iterations()) {
    const bool kept = other.verdict() == v1::KEPT && other.number() != iteration;
    if (kept && descend.contains(other.number())) built.push_back(other.number());
  }
  return built;
}

v1::Iteration Judged(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                     const Gates& gates, double expected_baseline_us) {
  v1::Iteration iteration = Begin(campaign, planned);
  *iteration.mutable_stages() = result.stages();
  *iteration.mutable_beside() = result.beside();
  iteration.set_built_ahead(result.built_ahead());
  iteration.set_device(result.device());
  iteration.set_profiled(result.profiled());
  iteration.set_notes(result.notes());
  if (!result.baseline_error().empty()) {
    iteration.set_notes(absl::StrCat(result.notes(), result.notes().empty() ? "" : "; ",
                                     "the baseline failed: ", result.baseline_error()));
  }
  // Which is not the variant's fault.
  if (planned.has_parent() && result.failure().check() == v1::CHECK_UNSTEADY) {
    JudgeUnsteady(absl::StrCat("Unclear: ", result.failure().message()), result, gates, &iteration);
    return iteration;
  }
  if (result.has_failure()) {
    iteration.set_verdict(v1::REJECTED);
    *iteration.mutable_failure() = result.failure();
    iteration.set_reason(result.failure().message());
    FailGate(&iteration, gates.For(result.failure().check()), 0, result.failure().message());
    return iteration;
  }
  if (!result.passed_over().empty()) {
    iteration.set_verdict(v1::REJECTED);
    iteration.set_untried(true);
    iteration.set_reason(absl::StrCat("passed over: ", result.passed_over()));
    return iteration;
  }
  if (const v1::Iteration* parent = planned.has_parent() ? campaign.Find(planned.parent()) : nullptr;
      parent != nullptr && result.same_code()) {
    JudgeSameCode(campaign, *parent, &iteration);
    return iteration;
  }
  const bool cold = Cold(campaign.bundle());
  iteration.set_time_us(cold ? result.cold_us() : result.warm_us());
  iteration.set_parent_time_us(cold ? result.parent_cold_us() : result.parent_warm_us());
  const KeepRule rule = RuleOf(campaign, planned);
  SetSizes(campaign, result, planned, rule, &iteration);
  // A comparison that stopped early has no time at the size that stands for all, but it has others.
  const bool timed_elsewhere = planned.has_parent() && iteration.time_us() == 0 && iteration.sizes_size() > 0;
  const bool untimed = planned.has_parent() && iteration.time_us() == 0 && !timed_elsewhere;
  if (untimed && result.discarded() >= rule.max_discarded) {
    JudgeUnsteady(CompareSamples(campaign, result, planned, rule).reason(), result, gates, &iteration);
    return iteration;
  }
  if ((!(iteration.time_us() > 0) && !timed_elsewhere) || !std::isfinite(iteration.time_us())) {
    iteration.set_verdict(v1::REJECTED);
    iteration.set_reason("the worker sent no time");
    return iteration;
  }
  const double baseline_us = BaselineUs(campaign, planned, result);
  const v1::Iteration* parent = planned.has_parent() ? campaign.Find(planned.parent()) : nullptr;
  SetSeatTimes(campaign, result, &iteration);
  if (parent == nullptr) {
    iteration.set_verdict(v1::KEPT);
    iteration.set_reason("the start variant passed validation: the campaign starts from it");
    iteration.set_speedup_over_start(1);
  } else {
    *iteration.mutable_interval() = CompareSamples(campaign, result, planned, rule);
    const v1::Comparison& interval = iteration.interval();
    iteration.set_comparison(interval.result());
    iteration.set_speedup_over_parent(std::exp(interval.mean_log_ratio()));
    iteration.set_speedup_over_start(campaign.SpeedupOf(*parent) * iteration.speedup_over_parent());
    iteration.set_verdict(interval.result() == v1::FASTER ? v1::KEPT : v1::REVERTED);
    iteration.set_reason(interval.reason());
    CheckWorst(campaign, gates, &iteration);
    const bool overtaken = Overtaken(campaign, planned);
    const bool faster = iteration.verdict() == v1::KEPT;
    const v1::Iteration* better = faster && overtaken ? BetterInRound(campaign, iteration) : nullptr;
    if (better != nullptr) {
      iteration.set_verdict(v1::REVERTED);
      iteration.set_expedition(true);  // it is compared with the best if that one is taken back
      iteration.set_reason(
          absl::StrCat(interval.reason(), "; but iteration ", better->number(), " of the same round gained more"));
    }
    CheckParent(campaign, planned, *parent, gates, &iteration);
    // Beside the same parent it gained more than the best.
    const bool of_round = overtaken && KeptBeside(campaign, *campaign.best(), planned.parent());
    const bool waits = iteration.expedition() || (overtaken && !of_round);
    if (waits && iteration.verdict() == v1::KEPT) AwaitComparison(campaign, &iteration);
    if (iteration.has_prediction()) {
      const v1::Evidence* before = campaign.EvidenceOf(planned.parent());
      CheckPrediction(iteration.speedup_over_parent(), before == nullptr ? v1::Evidence() : *before, result.evidence(),
                      iteration.mutable_prediction());
    }
  }
  // From the start's time next to the baseline and the speedup over the start: absolute times drift with the GPU's
  // state.
  const double start_us = parent == nullptr ? iteration.time_us() : campaign.summary().start_us();
  const bool several = HasSeveralSizes(campaign.summary().spec().goal());
  if (several && baseline_us > 0) {
    const v1::Iteration& start = parent == nullptr ? iteration : *campaign.Find(0);
    const std::optional<double> over = LogBaselineOverStart(
        campaign.goal_sizes(), start, parent == nullptr ? result.baselines() : campaign.baselines());
    iteration.set_speedup_over_baseline(std::exp(over.value_or(0)) * iteration.speedup_over_start());
  } else if (baseline_us > 0) {
    iteration.set_speedup_over_baseline(baseline_us / start_us * iteration.speedup_over_start());
  } else {
    iteration.set_speedup_over_baseline(iteration.speedup_over_start());
  }
  CheckGates(gates, baseline_us, expected_baseline_us, result.baseline_error(), &iteration);
  return iteration;
}

}  // namespace

v1::Iteration Judge(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                    const Gates& gates, double expected_baseline_us) {
  if (campaign.start_rejected() && planned.has_parent()) {
    v1::Iteration iteration = Begin(campaign, planned);
    *iteration.mutable_stages() = result.stages();
    *iteration.mutable_beside() = result.beside();
    iteration.set_built_ahead(result.built_ahead());
    iteration.set_device(result.device());
    iteration.set_verdict(v1::REJECTED);
    iteration.set_untried(true);
    iteration.set_reason("the start variant was rejected meanwhile");
    return iteration;
  }
  v1::Iteration iteration = Judged(campaign, planned, result, gates, expected_baseline_us);
  NumberStart(campaign, planned, &iteration);
  iteration.set_unsanitized(iteration.verdict() == v1::KEPT && result.sanitize_later());
  return iteration;
}

v1::TotalGain JudgeTotal(const CampaignState& campaign, const v1::TrialPlanned& planned,
                         const v1::TrialResult& result) {
  v1::TotalGain total;
  total.set_iteration(planned.iteration());
  total.set_leg(campaign.leg());
  *total.mutable_sizes() = result.sizes();
  for (v1::SizeTime& size : *total.mutable_sizes()) {
    size.clear_values();
    for (const v1::Size& also : planned.also()) {
      if (also.name() == size.size()) *size.mutable_values() = also.values();
    }
  }
  total.set_interim(planned.interim() && result.sizes().empty());  // a worker may do more than it was asked for
  SetBaselines(campaign, &total);
  if (const v1::Iteration* iteration = campaign.Find(planned.iteration())) {
    total.set_multiplied(campaign.SpeedupOf(*iteration));
  }
  // An unsteady GPU or a gap in a recording is not a failure of the variant.
  const bool failed = result.has_failure() && result.failure().check() != v1::CHECK_UNSTEADY;
  const std::string unmeasured = campaign.start_rejected() ? "the start variant was rejected meanwhile"
                                 : result.has_failure()    ? result.failure().message()
                                                           : result.passed_over();
  const KeepRule rule = KeepRuleOf(campaign.summary().spec().keep());
  if (!unmeasured.empty() || result.pairs_size() < rule.first_pairs || result.discarded() >= rule.max_discarded) {
    total.mutable_interval()->set_result(v1::UNCLEAR);
    total.mutable_interval()->set_reason(absl::StrCat("it could not be measured against the start: ",
                                                      unmeasured.empty() ? "the GPU was too unsteady" : unmeasured));
    if (failed) *total.mutable_failure() = result.failure();
  } else {
    *total.mutable_interval() = CompareSamples(campaign, result, planned, rule);
    total.set_speedup_over_start(std::exp(total.interval().mean_log_ratio()));
    SetPairedTimes(campaign, result, &total);
  }
  if (result.has_beside_baseline()) {
    v1::BesideBaseline& beside = *total.mutable_beside_baseline();
    beside = result.beside_baseline();
    beside.clear_interval();  // a worker's or a recording's
    const std::vector<double> ratios(beside.log_ratios().begin(), beside.log_ratios().end());
    if (!ratios.empty()) *beside.mutable_interval() = MeanInterval(ratios);
  }
  if (failed || total.interval().result() == v1::SLOWER) {
    for (const int number : BuiltOn(campaign, planned.iteration())) {
      // What is slow at the sizes of this leg may be what another was won by.
      if (failed || campaign.Find(number)->leg() == campaign.leg()) total.add_taken_back(number);
    }
  }
  return total;
}

void FinishTotal(const CampaignState& campaign, const v1::TrialPlanned& planned, const v1::TrialResult& result,
                 v1::TrialFinished* finished) {
  *finished->mutable_total_gain() = JudgeTotal(campaign, planned, result);
  if (campaign.start_rejected()) return;
  for (v1::RevisedIteration& revised : RevisedBy(finished->total_gain(), campaign.iterations())) {
    *finished->add_revised() = std::move(revised);
  }
}

v1::RevisedIteration UncomparedEnd(const CampaignState& campaign, const v1::TrialPlanned& planned,
                                   const std::string& why) {
  const v1::Iteration& end = *campaign.Find(planned.iteration());
  v1::RevisedIteration revised = Unrevised(end);
  if (end.verdict() != v1::REJECTED) {
    revised.set_verdict(v1::REVERTED);
    revised.set_reason(
        absl::StrCat(end.reason(), "; it could not be compared with iteration ", planned.parent(), ": ", why));
  }
  revised.mutable_over_best()->set_result(v1::UNCLEAR);
  revised.mutable_over_best()->set_reason(why);
  revised.set_compared_with(planned.parent());
  return revised;
}

v1::RevisedIteration JudgeEnd(const CampaignState& campaign, const v1::TrialPlanned& planned,
                              const v1::TrialResult& result, const Gates& gates) {
  // By what another trial found meanwhile.
  const bool rejected = campaign.Find(planned.iteration())->verdict() == v1::REJECTED;
  if (rejected) return UncomparedEnd(campaign, planned, "it was rejected meanwhile");
  if (result.has_failure()) {
    v1::RevisedIteration wrong = UncomparedEnd(campaign, planned, result.failure().message());
    if (result.failure().check() != v1::CHECK_UNSTEADY) {  // it was found wrong: no step begins from it
      wrong.set_verdict(v1::REJECTED);
      *wrong.mutable_failure() = result.failure();
      *wrong.mutable_failed_gate() = gates.For(result.failure().check()).Failed(0, result.failure().message());
    }
    return wrong;
  }
  if (!result.passed_over().empty()) return UncomparedEnd(campaign, planned, result.passed_over());
  if (result.same_code()) return UncomparedEnd(campaign, planned, "both have the same machine code and launches");
  const v1::Iteration& end = *campaign.Find(planned.iteration());
  const v1::Iteration& best = *campaign.Find(planned.parent());
  v1::Iteration beside = end;  // with the best as its parent
  beside.set_parent(best.number());
  beside.clear_as_candidate();
  beside.clear_as_parent();
  beside.clear_candidate_beside_witness();
  beside.clear_parent_beside_witness();
  beside.clear_parent_alone();
  beside.clear_parent_alone_beside_anchor();
  beside.clear_parent_again();
  SetSeatTimes(campaign, result, &beside);
  const std::optional<std::string> wrong =
      SlowedParent(campaign, beside, planned.noise(), gates.Get(GateKind::kSeat).threshold);
  if (wrong) {
    v1::RevisedIteration slowed = UncomparedEnd(campaign, planned, *wrong);
    slowed.set_verdict(v1::REJECTED);
    slowed.mutable_failure()->set_stage(v1::STAGE_MEASURE);
    slowed.mutable_failure()->set_check(v1::CHECK_SEAT);
    slowed.mutable_failure()->set_message(*wrong);
    *slowed.mutable_failed_gate() = gates.Get(GateKind::kSeat).Failed(0, *wrong);
    return slowed;
  }

  const KeepRule rule = KeepRuleOf(campaign.summary().spec().keep());
  const v1::Comparison compared = CompareSamples(campaign, result, planned, rule);
  if (compared.pairs() == 0) return UncomparedEnd(campaign, planned, compared.reason());
  v1::RevisedIteration revised = UncomparedEnd(campaign, planned, "");
  *revised.mutable_over_best() = compared;
  const v1::Comparison& interval = revised.over_best();
  beside.set_verdict(interval.result() == v1::FASTER && best.verdict() == v1::KEPT ? v1::KEPT : v1::REVERTED);
  beside.clear_sizes();
  SetSizes(campaign, result, planned, rule, &beside);
  CheckWorst(campaign, gates, &beside);
  std::string little;
  if (beside.verdict() == v1::KEPT) {
    little = TooLittleBesides(campaign, planned, beside, interval.mean_log_ratio(), rule);
  }
  const double over_best = std::exp(interval.mean_log_ratio());
  const v1::Iteration& best_now = *campaign.best();
  const bool overtaken = best_now.number() != best.number();
  const bool kept = beside.verdict() == v1::KEPT && little.empty() && !overtaken;
  revised.set_verdict(kept ? v1::KEPT : v1::REVERTED);
  revised.set_reason(absl::StrFormat("the end of an expedition, %.3fx the speed of the best variant (iteration %d): %s",
                                     over_best, best.number(), interval.reason()));
  if (!little.empty()) revised.set_reason(absl::StrCat(revised.reason(), "; but ", little));
  const double correction = campaign.SpeedupOf(best) * over_best / end.speedup_over_start();
  revised.set_speedup_over_start(end.speedup_over_start() * correction);
  revised.set_speedup_over_baseline(end.speedup_over_baseline() * correction);
  revised.set_notes(result.notes());
  if (best.verdict() != v1::KEPT) {
    // The times of what was taken back are not believed, and say nothing of this one.
    revised.set_reason(absl::StrCat(revised.reason(), "; but that was taken back meanwhile"));
    revised.set_speedup_over_start(end.speedup_over_start());
    revised.set_speedup_over_baseline(end.speedup_over_baseline());
    if (campaign.SpeedupOf(end) > campaign.SpeedupOf(best_now)) revised.clear_over_best();
  } else if (beside.verdict() == v1::KEPT && little.empty() && overtaken) {
    revised.set_reason(absl::StrCat(revised.reason(), "; but iteration ", best_now.number(), " was kept meanwhile"));
    // It is compared with that, too, if it may be faster.
    if (revised.speedup_over_start() > campaign.SpeedupOf(best_now)) revised.clear_over_best();
  }
  if (!kept) return revised;
  if (result.sanitize_later()) revised.set_unsanitized(true);
  // It is a parent's time from now on, and those of a step come from one process.
  revised.set_time_us(Cold(campaign.bundle()) ? result.cold_us() : result.warm_us());
  for (const v1::SizeComparison& size : beside.sizes()) {
    v1::SizeComparison& at = *revised.add_sizes();
    at.set_size(size.size());
    at.set_time_us(size.time_us());
  }
  if (beside.has_as_candidate()) *revised.mutable_as_candidate() = beside.as_candidate();
  if (beside.has_candidate_beside_witness()) {
    *revised.mutable_candidate_beside_witness() = beside.candidate_beside_witness();
  }
  return revised;
}

v1::Iteration PutAside(const CampaignState& campaign, const v1::TrialPlanned& planned, int attempts) {
  v1::Iteration iteration = Begin(campaign, planned);
  iteration.set_verdict(v1::REJECTED);
  iteration.set_reason(absl::StrFormat("put aside: %d workers were lost while running it", attempts));
  NumberStart(campaign, planned, &iteration);
  return iteration;
}

v1::Verification Compare(const v1::Iteration& recorded, const v1::TrialResult& result, const v1::Bundle& bundle) {
  v1::Verification verification;
  verification.set_iteration(recorded.number());
  verification.set_recorded_us(recorded.time_us());
  verification.set_recorded_speedup(recorded.speedup_over_parent());
  auto differs = [&](const char* what, const std::string& before, const std::string& now) {
    if (before != now) verification.add_differences(absl::StrCat(what, ": ", before, " recorded, ", now, " now"));
  };
  differs("device", recorded.device(), result.device());
  differs("driver", recorded.gpu().driver_version(), result.gpu().driver_version());
  differs("NVRTC", recorded.toolchain().nvrtc(), result.toolchain().nvrtc());
  differs("nvcc", recorded.toolchain().nvcc(), result.toolchain().nvcc());
  if (result.has_failure() || !result.passed_over().empty()) {
    verification.set_text(absl::StrCat("it could not be measured again: ",
                                       result.has_failure() ? result.failure().message() : result.passed_over()));
    return verification;
  }
  verification.set_same_code(!recorded.cubin_hash().empty() && recorded.cubin_hash() == result.cubin_hash());
  verification.set_measured_us(Cold(bundle) ? result.cold_us() : result.warm_us());
  if (recorded.has_parent() && !result.pairs().empty()) {
    verification.set_measured_speedup(std::exp(MeanLogRatio(recorded, result)));
  }
  auto agree = [](double now, double before) { return std::abs(now / before - 1) <= kMaxDeviation; };
  // Verdicts depend on the ratio to the parent; absolute times drift with the GPU's state.
  const bool ratio = recorded.has_parent() ? agree(verification.measured_speedup(), verification.recorded_speedup())
                                           : agree(verification.measured_us(), verification.recorded_us());
  const bool time = agree(verification.measured_us(), verification.recorded_us());
  verification.set_agrees(ratio && time);
  std::string text =
      absl::StrFormat("%.3f us now, %.3f us recorded (%+.1f %%)", verification.measured_us(),
                      verification.recorded_us(), 100 * (verification.measured_us() / verification.recorded_us() - 1));
  if (recorded.has_parent()) {
    absl::StrAppendFormat(&text, "; %.3fx over its parent now, %.3fx recorded", verification.measured_speedup(),
                          verification.recorded_speedup());
  }
  if (!verification.agrees() && verification.differences_size() > 0) {
    absl::StrAppend(&text, "; ", absl::StrJoin(verification.differences(), "; "));
  }
  verification.set_text(text);
  return verification;
}

}  // namespace pawl
