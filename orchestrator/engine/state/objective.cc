// What a campaign is judged by: the goal's sizes, or those of a portfolio's leg.
#include <algorithm>
#include <cmath>

#include "orchestrator/engine/state/campaign.h"

namespace pawl {

const v1::Goal& CampaignState::GoalOf(int leg) const {
  return leg < summary_.legs_size() ? summary_.legs(leg).goal() : summary_.spec().goal();
}

// The same campaign with another objective: what was measured counts as far as it was measured at its sizes.
void CampaignState::BeginLeg(int leg) {
  leg_ = leg;
  goal_sizes_ = GoalSizes(*bundle_, goal());
  tried_before_leg_ = summary_.counts().tried();
  ran_before_leg_ = ran_;
  dollars_before_leg_ = summary_.dollars();
  leg_correction_ = 1;
  reverts_in_a_row_ = untried_in_a_row_ = kept_since_total_ = 0;
  memo_ = SearchMemo();
  tried_.clear();
  for (const v1::Iteration& iteration : iterations_) {
    if (IsUnknown(iteration)) continue;
    tried_.insert({SourceIdOf(iteration.number()), VariantText(VariantOf(iteration))});
  }
  ElectBest();
}

bool CampaignState::Covers(int leg) const {
  if (leg == leg_) return true;
  const std::vector<SizeWeight> sizes = GoalSizes(*bundle_, GoalOf(leg));
  return std::all_of(goal_sizes_.begin(), goal_sizes_.end(), [&](const SizeWeight& one) {
    return std::any_of(sizes.begin(), sizes.end(), [&](const SizeWeight& other) { return other.size == one.size; });
  });
}

const v1::Iteration& CampaignState::CodeOf(const v1::Iteration& iteration) const {
  const v1::Iteration* at = &iteration;
  // Each leads to one that was judged before it, or to one that was kept, which leads nowhere.
  for (auto same = same_code_.find(at->number()); same != same_code_.end(); same = same_code_.find(at->number())) {
    const v1::Iteration* as = Find(same->second.as);
    if (as == nullptr || !Covers(same->second.leg)) break;
    at = as;
  }
  return *at;
}

double CampaignState::SpeedupOf(const v1::Iteration& of) const {
  const v1::Iteration& iteration = CodeOf(of);
  if (iteration.leg() == leg_) return iteration.speedup_over_start();
  double sum = 0;
  for (const SizeWeight& size : goal_sizes_) {
    const std::optional<double> at = LogSpeedAt(iteration.number(), size.size);
    if (!at) return 0;
    sum += size.weight * *at;
  }
  return std::exp(sum) * (IsProduct(iteration) ? leg_correction_ : 1);
}

std::optional<double> LogBaselineOverStart(const std::vector<SizeWeight>& sizes, const v1::Iteration& start,
                                           const google::protobuf::RepeatedPtrField<v1::BaselineTime>& baselines) {
  double sum = 0;
  for (const SizeWeight& size : sizes) {
    const auto baseline = std::find_if(baselines.begin(), baselines.end(),
                                       [&](const v1::BaselineTime& one) { return one.size() == size.size; });
    const auto time = std::find_if(start.sizes().begin(), start.sizes().end(),
                                   [&](const v1::SizeComparison& one) { return one.size() == size.size; });
    if (baseline == baselines.end() || time == start.sizes().end() || !(baseline->graph_us() > 0) ||
        !(time->time_us() > 0)) {
      return std::nullopt;
    }
    sum += size.weight * std::log(baseline->graph_us() / time->time_us());
  }
  return sum;
}

double CampaignState::BaselineOverStart() const {
  const v1::Iteration* start = Find(0);
  if (start == nullptr || !(summary_.baseline_us() > 0)) return 1;
  return std::exp(LogBaselineOverStart(goal_sizes_, *start, baselines_).value_or(0));
}

std::optional<double> CampaignState::LogSpeedAt(int iteration, const std::string& size) const {
  double sum = 0;
  const v1::Iteration* at = Find(iteration);
  for (; at != nullptr && at->has_parent(); at = Find(at->parent())) {
    const auto found = std::find_if(at->sizes().begin(), at->sizes().end(),
                                    [&](const v1::SizeComparison& one) { return one.size() == size; });
    if (found == at->sizes().end()) return std::nullopt;
    sum += found->interval().mean_log_ratio();
  }
  if (at == nullptr) return std::nullopt;
  return sum;
}

double CampaignState::BestLogSpeedAt(const std::string& size) const {
  double best = 0;
  for (const v1::Iteration& iteration : iterations_) {
    if (iteration.verdict() == v1::KEPT) best = std::max(best, LogSpeedAt(iteration.number(), size).value_or(0));
  }
  return best;
}

}  // namespace pawl
