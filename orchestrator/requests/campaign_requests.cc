// What people ask about campaigns, beside submitting (submission.cc), proposing (proposals.cc) and verifying
// (verification.cc).
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/search/next_event.h"
#include "orchestrator/engine/state/campaign_states.h"

namespace pawl {
namespace {

absl::Status Ended(const v1::Campaign& campaign) {
  v1::ErrorDetail detail;
  detail.set_resource(campaign.name());
  detail.set_fix(
      absl::StrCat("pawl show ", campaign.name(), " says how it ended; submit the bundle again to continue"));
  return Error(absl::StatusCode::kFailedPrecondition,
               absl::StrCat(campaign.name(), " has ended: ", v1::CampaignState_Name(campaign.state()),
                            campaign.message().empty() ? "" : ", ", campaign.message()),
               detail);
}

absl::StatusOr<int64_t> NumberOf(const std::string& field, const std::string& name) {
  const std::optional<int64_t> number = ParseCampaignName(name);
  if (!number) return BadField(field, "expected a campaign's name, like campaigns/7");
  return *number;
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CampaignState>> Orchestrator::Unended(const std::string& field,
                                                                           const std::string& name) {
  if (absl::Status status = Serving(); !status.ok()) return status;
  absl::StatusOr<int64_t> number = NumberOf(field, name);
  if (!number.ok()) return number.status();
  const auto found = state_.campaigns.find(*number);
  if (found != state_.campaigns.end() && !found->second->ended()) return found->second;
  absl::StatusOr<v1::Campaign> stored = Stored(*number);
  return stored.ok() ? Ended(*stored) : stored.status();
}

absl::StatusOr<CampaignState*> Orchestrator::Steered(const std::string& field, const std::string& name,
                                                     Deferred* deferred) {
  AwaitDecision(name);
  if (const auto found = Unended(field, name); !found.ok()) return found.status();
  const int64_t number = *ParseCampaignName(name);
  if (state_.InUse(number)) {
    if (absl::Status status = WriteResults(deferred); !status.ok()) return status;
  }
  return &state_.Own(number);
}

absl::StatusOr<v1::Campaign> Orchestrator::Get(const v1::GetCampaignRequest& request) {
  absl::StatusOr<int64_t> number = NumberOf("name", request.name());
  if (!number.ok()) return number.status();
  absl::StatusOr<v1::Campaign> stored = Stored(*number);
  if (!stored.ok() || IsFinal(stored->state())) return stored;
  absl::MutexLock lock(&mutex_);
  const auto found = state_.campaigns.find(*number);
  if (found == state_.campaigns.end() || found->second->summary().state() == v1::PAUSED) return stored;
  const absl::Duration served = state_.CampaignTime();
  const absl::Duration running =
      found->second->Running({clock_(), served}) - scheduler_.HeldBack(*found->second, served);
  stored->set_minutes(absl::ToDoubleMinutes(std::max(running, absl::ZeroDuration())));
  if (state_.queue.HasTrialOf(*number) || state_.InUse(*number) || ProposalDeadline(*found->second)) {
    scheduler_.SayWhatItWaitsFor(*found->second, clock_(), &*stored);
  }
  return stored;
}

void Orchestrator::AddWaits(v1::ListCampaignsResponse* list) {
  absl::MutexLock lock(&mutex_);
  const absl::Time now = clock_();
  for (v1::Campaign& campaign : *list->mutable_campaigns()) {
    const int64_t number = ParseCampaignName(campaign.name()).value_or(0);
    const auto found = state_.campaigns.find(number);
    if (found == state_.campaigns.end() || !(state_.queue.HasTrialOf(number) || state_.InUse(number))) continue;
    scheduler_.SayWhatHoldsIt(*found->second, now, &campaign);
  }
}

absl::StatusOr<v1::Campaign> Orchestrator::Pause(const v1::PauseCampaignRequest& request) {
  if (absl::Status status = CheckText("reason", request.reason()); !status.ok()) return status;
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  {
    Turn turn(&mutex_);
    absl::StatusOr<CampaignState*> campaign = Steered("name", request.name(), turn.deferred());
    if (!campaign.ok()) return campaign.status();
    if ((*campaign)->summary().state() != v1::PAUSED) {
      Step step = Begin();
      v1::Event event;
      event.mutable_paused()->set_author(request.author());
      event.mutable_paused()->set_reason(request.reason());
      committer_.Add(&step, *campaign, std::move(event));
      if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
    }
  }
  return Stored(*ParseCampaignName(request.name()));
}

absl::StatusOr<v1::Campaign> Orchestrator::Resume(const v1::ResumeCampaignRequest& request) {
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  {
    Turn turn(&mutex_);
    absl::StatusOr<CampaignState*> campaign = Steered("name", request.name(), turn.deferred());
    if (!campaign.ok()) return campaign.status();
    if ((*campaign)->summary().state() != v1::PAUSED) {
      v1::ErrorDetail detail;
      detail.set_resource(request.name());
      detail.set_fix("no action needed: the campaign continues by itself");
      return Error(absl::StatusCode::kFailedPrecondition, absl::StrCat(request.name(), " is not paused"), detail);
    }
    Step step = Begin();
    v1::Event event;
    event.mutable_resumed()->set_author(request.author());
    committer_.Add(&step, *campaign, std::move(event));
    if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  }
  return Stored(*ParseCampaignName(request.name()));
}

absl::StatusOr<v1::Campaign> Orchestrator::Cancel(const v1::CancelCampaignRequest& request) {
  if (absl::Status status = CheckText("reason", request.reason()); !status.ok()) return status;
  if (absl::Status status = CheckText("author", request.author()); !status.ok()) return status;
  const int64_t number = ParseCampaignName(request.name()).value_or(0);
  if (absl::Status status = CancelUnended(number, request); !status.ok()) {
    if (!absl::IsFailedPrecondition(status)) return status;
    absl::StatusOr<v1::Campaign> stored = Stored(number);
    return stored.ok() && stored->state() == v1::CANCELLED ? stored : status;
  }
  return Stored(number);
}

absl::Status Orchestrator::CancelUnended(int64_t number, const v1::CancelCampaignRequest& request) {
  Turn turn(&mutex_);
  absl::StatusOr<CampaignState*> campaign = Steered("name", request.name(), turn.deferred());
  if (!campaign.ok()) return campaign.status();
  Step step = Begin();
  leases_.ReleaseAllOf(number, **campaign);
  v1::Event event;
  v1::CampaignEnded& ended = *event.mutable_ended();
  ended.set_state(v1::CANCELLED);
  ended.set_reason(v1::STOP_REASON_CANCELLED);
  ended.set_message(request.reason());
  ended.set_author(request.author());
  ended.set_tier(TierOf((*campaign)->summary(), options_.profiles->gates));
  committer_.Add(&step, *campaign, std::move(event));
  return Commit(&step, turn.deferred());
}

absl::StatusOr<v1::ListPatternsResponse> Orchestrator::Patterns(const v1::ListPatternsRequest& request) {
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) return status;
  v1::ListPatternsResponse response = state_.patterns.List(request);
  if (!request.own()) return response;
  Step step = Begin();
  state_.patterns.HandOut(response, &step.writes);
  if (step.writes.pattern_exports.empty()) return response;
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ImportPatternsResponse> Orchestrator::ImportPatterns(const v1::ImportPatternsRequest& request) {
  Turn turn(&mutex_);
  if (absl::Status status = Serving(); !status.ok()) return status;
  Step step = Begin();
  absl::StatusOr<v1::ImportPatternsResponse> imported = state_.patterns.Import(request, &step.writes);
  if (!imported.ok()) return imported;
  if (absl::Status status = Commit(&step, turn.deferred()); !status.ok()) return status;
  return imported;
}

absl::StatusOr<v1::ListWorkersResponse> Orchestrator::Workers(const v1::ListWorkersRequest& request) {
  absl::MutexLock lock(&mutex_);
  v1::ListWorkersResponse response;
  for (v1::Worker& worker : state_.workers.All(request.gone_too(), clock_()))
    *response.add_workers() = std::move(worker);
  return response;
}

}  // namespace pawl
