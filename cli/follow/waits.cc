#include "cli/follow/waits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/names/resource_name.h"
#include "cli/text/campaign_text.h"
#include "cli/text/failure.h"
#include "cli/text/situation_text.h"

namespace pawl {
namespace {

constexpr absl::Duration kLookForWorkers = absl::Milliseconds(500);
constexpr absl::Duration kLookForProposals = absl::Seconds(2);

}  // namespace

absl::Status WorkerWait::Look(CampaignClient& client, SteadyTime now) {
  if (now < next_look_) return absl::OkStatus();
  next_look_ = now + kLookForWorkers;
  const absl::StatusOr<v1::Campaign> campaign = client.GetCampaign(campaign_);
  if (!campaign.ok()) return absl::OkStatus();  // the watch finds out
  // Of a campaign that nobody has begun, the message says what it waits for. Maintenance and limits end by themselves,
  // and a contract alone waits for a proposal.
  const bool for_proposal = campaign->waiting_for() == v1::WAITING_FOR_PROPOSAL;
  if (campaign->state() != v1::WAITING || campaign->message().empty() || IsHeld(*campaign) || for_proposal) {
    since_ = SteadyTime::InfiniteFuture();
    return absl::OkStatus();
  }
  since_ = std::min(since_, now);
  if (now - since_ < patience_) return absl::OkStatus();
  v1::ErrorDetail detail;
  detail.set_resource(campaign_);
  detail.set_fix(absl::StrCat("the campaign stays queued until a worker can run it; `pawl cancel ",
                              ShortName(campaign_), "` cancels it"));
  return WithDetail(absl::FailedPreconditionError(campaign->message()), detail);
}

std::optional<std::string> ProposalWait::Look(CampaignClient& client, SteadyTime now) {
  if (now < next_look_ || (outside_ && !*outside_)) return std::nullopt;
  next_look_ = now + kLookForProposals;
  if (!outside_) {
    const absl::StatusOr<v1::Campaign> campaign = client.GetCampaign(campaign_);
    if (!campaign.ok()) return std::nullopt;  // the watch finds out
    outside_ = WaitsForProposals(campaign->spec().chooser());
    if (!*outside_) return std::nullopt;
  }
  const absl::StatusOr<v1::Situation> situation = client.GetSituation(campaign_);
  if (!situation.ok() || !situation->waits() || situation->deadline().seconds() == told_) return std::nullopt;
  told_ = situation->deadline().seconds();
  const std::string name = ShortName(campaign_);
  if (!situation->has_best()) {
    return absl::StrCat("waits ", WaitsText(*situation, absl::Now()), ", without device code yet: pawl propose ", name,
                        " --patch FILE --name NAME", flags_, "; pawl situation ", name, flags_, " shows the contract");
  }
  return absl::StrCat("waits ", WaitsText(*situation, absl::Now()), ": pawl propose ", name, " VARIABLE=VALUE", flags_,
                      "; pawl situation ", name, flags_, " shows the variables and what was tried");
}

}  // namespace pawl
