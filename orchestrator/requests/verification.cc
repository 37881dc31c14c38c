// Measuring an iteration again.
#include <algorithm>
#include <map>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "kernels/hand_off_limits.h"
#include "kernels/limits.h"
#include "orchestrator/core/errors.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/engine/state/campaign_states.h"

namespace pawl {
namespace {

size_t BytesOf(const v1::VerifyIterationRequest& request) {
  size_t bytes = 0;
  for (const v1::SourceFile& file : request.hand_off()) bytes += file.ByteSizeLong();
  return bytes;
}

// What a worker is to build and run goes into the log of the campaign: it must be small, and stay in its folder.
absl::Status CheckHandOffFiles(const v1::VerifyIterationRequest& request) {
  const size_t bytes = BytesOf(request);
  for (const v1::SourceFile& file : request.hand_off()) {
    const bool outside = file.path().empty() || file.path()[0] == '/' || absl::StrContains(file.path(), "..");
    const bool control = std::any_of(file.path().begin(), file.path().end(), absl::ascii_iscntrl);
    if (outside || control || file.path().size() > kMaxPath) {
      return BadField("hand_off", "expected paths below one folder, without .. and control characters");
    }
  }
  if (request.hand_off_size() > static_cast<int>(kMaxHandOffFiles) || bytes > kMaxHandOffBytes) {
    return BadField("hand_off",
                    absl::StrCat("it has ", request.hand_off_size(), " files of ", bytes, " bytes; expected at most ",
                                 kMaxHandOffFiles, " files of ", kMaxHandOffBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::VerifyIterationResponse> Orchestrator::Verify(const v1::VerifyIterationRequest& request) {
  const std::optional<NameInCampaign> name = ParseIterationName(request.name());
  if (!name) return BadField("name", "expected an iteration's name, like campaigns/7/iterations/12");
  if (absl::Status status = CheckHandOffFiles(request); !status.ok()) return status;
  auto refused = [&](const std::string& message, const std::string& fix) {
    v1::ErrorDetail detail;
    detail.set_resource(request.name());
    detail.set_fix(fix);
    return Error(absl::StatusCode::kFailedPrecondition, message, detail);
  };
  // The log of a campaign that has ended may be long: it is read before others have to wait for the lock.
  absl::StatusOr<v1::Campaign> before = Stored(name->campaign);
  if (!before.ok()) return before.status();
  absl::StatusOr<StoredCampaign> loaded = StoredCampaign();
  if (IsFinal(before->state()) && !before->verifying()) loaded = ReadCampaign(store_, name->campaign, &bundles_);
  if (!loaded.ok()) return loaded.status();
  Turn turn(&mutex_);
  AwaitDecision(CampaignName(name->campaign));
  if (absl::Status status = WriteResults(turn.deferred()); !status.ok()) return status;
  absl::StatusOr<v1::Campaign> stored = Stored(name->campaign);
  if (!stored.ok()) return stored.status();
  auto found = state_.campaigns.find(name->campaign);
  if (found == state_.campaigns.end()) {
    const bool outdated = loaded->state == nullptr || before->last_sequence() != stored->last_sequence();
    if (outdated) loaded = ReadCampaign(store_, name->campaign, &bundles_);  // it ended, or was verified, meanwhile
    if (!loaded.ok()) return loaded.status();
    found = state_.campaigns.emplace(name->campaign, std::move(loaded->state)).first;
  }
  CampaignState& campaign = state_.Own(name->campaign);
  const v1::Iteration* iteration = campaign.Find(name->number);
  absl::Status status = absl::OkStatus();
  if (iteration == nullptr) {
    status = NoSuch(request.name(), "pawl history lists all iterations");
  } else if (!(iteration->time_us() > 0)) {
    status = refused(absl::StrCat(request.name(), " was never measured: ", iteration->reason()),
                     "verify a kept or reverted one");
  } else if (!campaign.leasable()) {
    status = refused(absl::StrCat(stored->name(), " is paused: none of its trials is leased"),
                     "pawl resume continues it; one that has ended can be verified as well");
  }
  for (const auto& [trial, open] : campaign.open_trials()) {
    if (open.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY) continue;
    if (open.planned.iteration() == name->number && request.hand_off().empty()) {
      v1::VerifyIterationResponse same;
      same.set_trial(TrialName(name->campaign, trial));
      same.set_after_sequence(stored->last_sequence());
      return same;
    }
    status = refused(absl::StrCat(stored->name(), " is being verified already"),
                     "wait for that to end, a minute at most if no worker takes it");
  }
  if (status.ok()) {
    status = CheckHeldBytes(state_, options_, campaign.author(), static_cast<int64_t>(BytesOf(request)));
  }
  if (!status.ok()) {
    if (campaign.ended() && campaign.open_trials().empty()) state_.Drop(name->campaign);
    return status;
  }
  Step step = Begin();
  v1::Event event;
  v1::TrialPlanned& planned = *event.mutable_planned();
  planned.set_trial(campaign.next_trial());
  planned.set_purpose(v1::TRIAL_PURPOSE_VERIFY);
  planned.set_iteration(name->number);
  if (iteration->has_parent()) {
    planned.set_parent(iteration->parent());
    *planned.mutable_noise() = campaign.NoiseFor(iteration->parent());
  }
  *planned.mutable_variant() = VariantOf(*iteration);
  if (iteration->has_change()) *planned.mutable_change() = iteration->change();
  *planned.mutable_hand_off() = request.hand_off();
  v1::VerifyIterationResponse response;
  response.set_trial(TrialName(name->campaign, planned.trial()));
  response.set_after_sequence(stored->last_sequence());
  committer_.Add(&step, &campaign, std::move(event));
  if (absl::Status committed = Commit(&step, turn.deferred()); !committed.ok()) return committed;
  return response;
}

// Nobody may be waiting for them any more, and each keeps the next one out.
void Orchestrator::GiveUpVerifications(Step* step) {
  for (auto& [number, campaign] : state_.campaigns) {
    if (!campaign->summary().verifying() || state_.InUse(number)) continue;
    const std::map<int, OpenTrial> open_trials = campaign->open_trials();
    for (const auto& [trial, open] : open_trials) {
      if (open.planned.purpose() != v1::TRIAL_PURPOSE_VERIFY || !open.worker.empty()) continue;
      // In maintenance, when no campaign's time passes, and of a paused campaign none will be leased.
      const bool waits = Between(open.free_since, {step->now, step->served}) < options_.verification;
      if (waits && !state_.maintenance.on() && campaign->leasable()) continue;
      v1::Event event;
      event.mutable_finished()->set_trial(trial);
      event.mutable_finished()->mutable_verification()->set_iteration(open.planned.iteration());
      v1::Campaign held;
      event.mutable_finished()->mutable_verification()->set_text(
          scheduler_.SayWhatHoldsIt(*campaign, step->now, &held) ? absl::StrCat("abandoned: ", held.message())
          : campaign->leasable()                                 ? "abandoned: no worker leased the trial"
                                                                 : "abandoned: the campaign was paused");
      committer_.Add(step, campaign.get(), std::move(event));
    }
  }
}

}  // namespace pawl
