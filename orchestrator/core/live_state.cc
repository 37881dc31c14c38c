#include "orchestrator/core/live_state.h"

#include "absl/strings/str_cat.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

// What a baseline's time depends on.
std::string BaselineKey(const v1::Campaign& campaign, const std::string& what) {
  return absl::StrCat(campaign.bundle_hash(), "\n", campaign.device(), "\n", campaign.spec().goal().size(), "\n", what);
}

}  // namespace

void TrialQueue::Update(int64_t number, const CampaignState& campaign) {
  std::vector<Key>& keys = by_campaign_[number];
  for (const Key& key : keys) all_.erase(key);
  keys.clear();
  if (!campaign.leasable()) return;
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (!open.worker.empty()) continue;
    keys.push_back({open.planned_at, number, trial});
    all_.insert(keys.back());
  }
}

void TrialQueue::Remove(int64_t number) {
  const auto found = by_campaign_.find(number);
  if (found == by_campaign_.end()) return;
  for (const Key& key : found->second) all_.erase(key);
  by_campaign_.erase(found);
}

void TrialQueue::Clear() {
  all_.clear();
  by_campaign_.clear();
}

bool TrialQueue::HasTrialOf(int64_t number) const {
  const auto found = by_campaign_.find(number);
  return found != by_campaign_.end() && !found->second.empty();
}

void KnownBaselines::Note(const v1::Campaign& summary) {
  if (summary.state() != v1::FINISHED || !(summary.baseline_us() > 0)) return;
  us_[BaselineKey(summary, summary.baseline())] = summary.baseline_us();
}

double KnownBaselines::Expected(const CampaignState& campaign, const v1::TrialResult& result) const {
  const v1::CampaignSpec& spec = campaign.summary().spec();
  if (spec.expected_baseline_us() > 0) return spec.expected_baseline_us();
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (baseline.size() != spec.goal().size()) continue;
    const auto known = us_.find(BaselineKey(campaign.summary(), baseline.what()));
    if (known != us_.end()) return known->second;
  }
  return 0;
}

LiveState::LiveState(const OrchestratorOptions& options)
    : workers(options.lease), patterns(ShippedPatterns()), served(options.monotonic, options.renew) {}

void LiveState::Drop(int64_t number) {
  queue.Remove(number);
  // Leases of an ended campaign are of no use any more; a renewal is told to stop.
  std::erase_if(leases, [&](const auto& lease) { return lease.first.first == number; });
  campaigns.erase(number);
}

void LiveState::SendAway(const absl::StatusOr<v1::LeaseTrialResponse>& answer, Deferred* deferred) {
  for (auto& [id, lease] : waiting) {
    deferred->push_back([waits = std::move(lease.answer), answer] { waits(answer); });
  }
  waiting.clear();
}

}  // namespace pawl
