#include "orchestrator/engine/ahead/look_ahead.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "orchestrator/engine/verdict/verdict.h"
#include "profiles/keep_rule.h"

namespace pawl {
namespace {

constexpr size_t kMostToLookAhead = 300;  // iterations: a copy has to compute all again that the search remembers
// Log speedups over the parent that a trial without a prediction is thought to have; and, of all, the least by which
// one that is kept is faster, and one that is not is slower: between them a comparison may come out either way.
constexpr double kSlower = -0.05, kFaster = 0.05, kClear = 0.02;
constexpr double kMost = 2;          // either way: a prediction may be anything after many misses
constexpr double kHalfWidth = 1.28;  // of a predicted interval, which holds 80 of 100 outcomes, in standard deviations

// A comparison that comes out like this at every size of the goal.
v1::TrialResult ResultOf(const CampaignState& campaign, const v1::TrialPlanned& planned, double log_ratio) {
  constexpr double kParentUs = 100, kSpread = 1e-3;
  const KeepRule rule;
  v1::TrialResult result;
  result.set_device(campaign.summary().device());
  *result.mutable_gpu() = campaign.gpu();
  result.set_parent_warm_us(kParentUs);
  result.set_parent_cold_us(kParentUs);
  result.set_warm_us(kParentUs * std::exp(-log_ratio));
  result.set_cold_us(result.warm_us());
  result.set_checked_to_keep(true);
  const std::vector<SizeWeight>& sizes = campaign.goal_sizes();
  for (const int process : {0, 1}) {
    if (process > 0 && log_ratio < 0) break;
    for (const SizeWeight& size : sizes) {
      for (int i = 0; i < rule.first_pairs; ++i) {
        v1::PairSample& pair = *(process > 0 ? result.add_confirming_pairs() : result.add_pairs());
        pair.set_process(process);
        pair.set_parent_us(kParentUs);
        pair.set_candidate_us(result.warm_us());
        pair.set_log_ratio(log_ratio + (i % 2 == 0 ? kSpread : -kSpread));
        if (sizes.size() > 1) pair.set_size(size.size);
      }
    }
  }
  // What is kept is much like its parent, as far as rules go.
  const v1::Evidence* evidence = campaign.EvidenceOf(planned.parent());
  if (log_ratio > 0 && evidence != nullptr) *result.mutable_evidence() = *evidence;
  return result;
}

// What would be chosen after the trial; of one with a verdict, if it has this log speedup.
std::vector<SearchMemo::Step> After(const CampaignState& campaign, const v1::Event& event, const Chooser& chooser,
                                    std::optional<double> log_ratio) {
  const v1::TrialPlanned& planned = event.planned();
  const std::shared_ptr<CampaignState> then = campaign.Copy();
  then->Apply(event);
  if (log_ratio) {
    v1::Event event_after;
    v1::TrialFinished& finished = *event_after.mutable_finished();
    finished.set_trial(planned.trial());
    *finished.mutable_result() = ResultOf(*then, planned, *log_ratio);
    if (planned.purpose() == v1::TRIAL_PURPOSE_END) {
      *finished.add_revised() = JudgeEnd(*then, planned, finished.result());
    } else {
      *finished.mutable_iteration() = Judge(*then, planned, finished.result());
    }
    then->Apply(event_after);
  }
  std::optional<Choice> choice = chooser.Next(*then);
  if (!choice) return {};
  std::vector<SearchMemo::Step> steps = std::move(choice->next);
  steps.insert(steps.begin(), {choice->parent, std::move(choice->change)});
  return steps;
}

}  // namespace

void LookAhead(const CampaignState& campaign, const v1::Event& event, const Chooser& chooser) {
  const v1::TrialPlanned& planned = event.planned();
  SearchMemo::Following following = {.trial = planned.trial()};
  const bool judged = planned.purpose() == v1::TRIAL_PURPOSE_ITERATION || planned.purpose() == v1::TRIAL_PURPOSE_END;
  const bool last = planned.purpose() == v1::TRIAL_PURPOSE_TOTAL && !planned.interim();
  if (campaign.iterations().size() > kMostToLookAhead) return;
  if (campaign.best() == nullptr || last || (judged && !planned.has_parent())) return;
  if (judged) {
    double slower = kSlower, faster = kFaster;
    if (planned.prediction().low() > 0) {
      const double low = std::log(planned.prediction().low()), high = std::log(planned.prediction().high());
      slower = (low + high) / 2;
      faster = slower + 0.5 * (high - low) / 2 / kHalfWidth;  // those that are kept are the better ones
    }
    following.reverted = After(campaign, event, chooser, std::clamp(slower, -kMost, -kClear));
    following.kept = After(campaign, event, chooser, std::clamp(faster, kClear, kMost));
  } else {
    following.reverted = After(campaign, event, chooser, std::nullopt);
  }
  campaign.search_memo().following = std::move(following);
}

}  // namespace pawl
