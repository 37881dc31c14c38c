#include "orchestrator/core/live_state.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/bundle_message.h"
#include "orchestrator/core/errors.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

// What a baseline's time depends on. `hash` is that of the contract, or of a bundle with it.
std::string BaselineKey(const std::string& hash, const v1::Campaign& campaign, const std::string& what) {
  return absl::StrCat(hash, "\n", campaign.device(), "\n", campaign.spec().goal().size(), "\n", what);
}

std::string Megabytes(int64_t bytes) { return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / (1 << 20)); }

// Calls `add(author, bytes)` for each, and for each hand-off that is verified, which is the campaign's author's.
template <typename Add>
void AddProposals(const CampaignState& campaign, const Add& add) {
  for (const CampaignState::Proposal& waiting : campaign.proposals()) {
    size_t bytes = waiting.proposed.ByteSizeLong();
    if (waiting.patched.patched.ok()) {
      bytes += waiting.patched.patched->text.size();
    } else if (waiting.proposed.change().has_source()) {  // not applied since the start: about what it will make
      bytes += campaign.SourceOf(campaign.summary().best()).size();
    }
    add(waiting.proposed.author(), static_cast<int64_t>(bytes));
  }
  for (const auto& [trial, open] : campaign.open_trials()) {
    const v1::TrialPlanned& planned = open.planned;
    if (planned.purpose() == v1::TRIAL_PURPOSE_ITERATION && planned.change().has_source()) {
      add(planned.author(), static_cast<int64_t>(campaign.SourceOf(planned.iteration()).size()));
    }
    int64_t hand_off = 0;
    for (const v1::SourceFile& file : planned.hand_off()) hand_off += static_cast<int64_t>(file.ByteSizeLong());
    if (hand_off > 0) add(campaign.author(), hand_off);
  }
  if (!campaign.HasEdits()) return;
  for (const v1::Iteration& iteration : campaign.iterations()) {
    if (!iteration.change().has_source()) continue;
    add(iteration.author(), static_cast<int64_t>(campaign.SourceOf(iteration.number()).size()));
  }
}

}  // namespace

void TrialQueue::Update(int64_t number, const CampaignState& campaign) {
  Trials& trials = by_campaign_[number];
  Erase(trials);
  trials = {campaign.author(), {}};
  if (!campaign.leasable()) return;
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (!open.worker.empty()) continue;
    trials.keys.push_back({-campaign.summary().spec().priority(), open.planned_at, number, trial});
    by_author_[trials.author].insert(trials.keys.back());
  }
}

void TrialQueue::Erase(const Trials& trials) {
  const auto author = by_author_.find(trials.author);
  if (author == by_author_.end()) return;
  for (const Key& key : trials.keys) author->second.erase(key);
  if (author->second.empty()) by_author_.erase(author);
}

void TrialQueue::Remove(int64_t number) {
  const auto found = by_campaign_.find(number);
  if (found == by_campaign_.end()) return;
  Erase(found->second);
  by_campaign_.erase(found);
}

void TrialQueue::Clear() {
  by_author_.clear();
  by_campaign_.clear();
}

bool TrialQueue::HasTrialOf(int64_t number) const {
  const auto found = by_campaign_.find(number);
  return found != by_campaign_.end() && !found->second.keys.empty();
}

void KnownBaselines::Note(const v1::Campaign& summary, const std::string& contract_hash) {
  if (!Counts(summary)) return;
  us_[BaselineKey(summary.bundle_hash(), summary, summary.baseline())] = summary.baseline_us();
  if (!contract_hash.empty()) us_[BaselineKey(contract_hash, summary, summary.baseline())] = summary.baseline_us();
}

double KnownBaselines::Expected(const CampaignState& campaign, const v1::TrialResult& result) const {
  const v1::CampaignSpec& spec = campaign.summary().spec();
  if (spec.expected_baseline_us() > 0) return spec.expected_baseline_us();
  for (const v1::BaselineTime& baseline : result.baselines()) {
    if (baseline.size() != spec.goal().size()) continue;
    for (const std::string& hash : {ContractHash(campaign.bundle()), campaign.summary().bundle_hash()}) {
      const auto known = us_.find(BaselineKey(hash, campaign.summary(), baseline.what()));
      if (known != us_.end()) return known->second;
    }
  }
  return 0;
}

void ServedClock::Start(absl::Duration served) {
  served_ = served;
  last_ = monotonic_();
  last_call_ = std::chrono::steady_clock::now();
}

absl::Duration ServedClock::Now() {
  const absl::Duration now = monotonic_();
  const auto call = std::chrono::steady_clock::now();
  const absl::Duration gap = absl::FromChrono(call - last_call_);
  const absl::Duration stopped = gap > longest_gap_ ? gap : absl::ZeroDuration();
  served_ += std::max(now - last_ - stopped, absl::ZeroDuration());
  last_ = now;
  last_call_ = call;
  return served_;
}

LiveState::LiveState(const OrchestratorOptions& options)
    : workers(options.lease), patterns(ShippedPatterns()), limits(options), served(options.monotonic, options.renew) {}

absl::Duration LiveState::CampaignTime() {
  const absl::Duration now = served.Now();
  const absl::Duration last = maintenance.on() ? absl::Microseconds(maintenance.since_us()) : now;
  return last - absl::Microseconds(maintenance.earlier_us());
}

void LiveState::Drop(int64_t number) {
  queue.Remove(number);
  // Leases of an ended campaign are of no use any more; a renewal is told to stop.
  std::erase_if(leases, [&](const auto& lease) { return lease.first.first == number; });
  std::erase_if(failed_by, [&](const auto& failed) { return failed.first.first == number; });
  campaigns.erase(number);
  overtaken.erase(number);
}

bool LiveState::InUse(int64_t number) const {
  const auto decided = deciding.find(number);
  if (decided == deciding.end()) return false;
  const auto found = campaigns.find(number);
  return found != campaigns.end() && found->second.get() == decided->second;
}

CampaignState& LiveState::Own(int64_t number) {
  std::shared_ptr<CampaignState>& campaign = campaigns.at(number);
  if (InUse(number)) {
    campaign = campaign->Copy();
    overtaken.insert(number);
  }
  return *campaign;
}

void LiveState::SendAway(const absl::StatusOr<v1::LeaseTrialResponse>& answer, Deferred* deferred) {
  for (auto& [id, lease] : waiting) {
    deferred->push_back([waits = std::move(lease.answer), answer] { waits(answer); });
  }
  waiting.clear();
}

absl::Status CheckHeldBytes(const LiveState& state, const OrchestratorOptions& options, const std::string& author,
                            int64_t bytes, const std::string& bundle_hash) {
  std::set<std::string> all = {bundle_hash}, own = {bundle_hash};
  int64_t all_bytes = bytes, own_bytes = bytes;
  for (const auto& [number, campaign] : state.campaigns) {
    const std::string& other = campaign->summary().bundle_hash();
    const bool new_to_all = all.insert(other).second;
    const bool new_to_own = campaign->author() == author && own.insert(other).second;
    if (new_to_all || new_to_own) {  // measuring a bundle takes long
      const auto size = static_cast<int64_t>(campaign->bundle().ByteSizeLong());
      all_bytes += new_to_all ? size : 0;
      own_bytes += new_to_own ? size : 0;
    }
    AddProposals(*campaign, [&](const std::string& proposer, int64_t proposed) {
      all_bytes += proposed;
      if (proposer == author) own_bytes += proposed;
    });
  }
  const bool own_limit = own_bytes > options.max_author_bytes;
  if (!own_limit && all_bytes <= options.max_bundle_bytes) return absl::OkStatus();
  v1::ErrorDetail detail;
  detail.set_retry_after_seconds(30);
  detail.set_fix(absl::StrCat("wait for campaigns to end or cancel some; the orchestrator's ",
                              own_limit ? "--max-author-megabytes" : "--max-bundle-megabytes", " is the limit"));
  const std::string whose = author.empty() ? " without an author" : absl::StrCat(" of ", author);
  return Error(absl::StatusCode::kResourceExhausted,
               absl::StrCat("the bundles and proposals of unfinished campaigns", own_limit ? whose : "", " would be ",
                            Megabytes(own_limit ? own_bytes : all_bytes), " with this one, and at most ",
                            Megabytes(own_limit ? options.max_author_bytes : options.max_bundle_bytes), " are taken"),
               detail);
}

}  // namespace pawl
