#include "worker/lease/stage_times.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr size_t kMaxCampaigns = 256;  // estimates are no loss

}  // namespace

std::string CampaignOf(const std::string& name) {
  const size_t slash = name.find('/');
  return name.substr(0, slash == std::string::npos ? slash : name.find('/', slash + 1));
}

void StageTimes::Add(const std::string& campaign, const v1::TrialResult& result) {
  if (result.stages().empty()) return;
  absl::MutexLock lock(&mutex_);
  if (campaigns_.size() >= kMaxCampaigns && !campaigns_.contains(campaign)) campaigns_.clear();
  Sums& sums = campaigns_[campaign];
  ++sums.trials;
  for (const v1::StageTime& time : result.stages()) sums.seconds[time.stage()] += time.seconds();
}

double StageTimes::SecondsLeft(const std::string& campaign, v1::Stage stage, double seconds) const {
  absl::MutexLock lock(&mutex_);
  const auto found = campaigns_.find(campaign);
  if (found == campaigns_.end()) return 0;
  double left = 0;
  for (const auto& [later, sum] : found->second.seconds) {
    const double mean = sum / found->second.trials;
    if (later == stage) left += std::max(0.0, mean - seconds);
    if (later > stage) left += mean;
  }
  return left;
}

}  // namespace pawl
