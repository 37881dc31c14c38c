#include "cli/follow/proposal_wait.h"

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/text/situation_text.h"

namespace pawl {
namespace {

constexpr absl::Duration kLook = absl::Seconds(2);

}  // namespace

std::optional<std::string> ProposalWait::Look(CampaignClient& client, absl::Time now) {
  if (now < next_look_ || (outside_ && !*outside_)) return std::nullopt;
  next_look_ = now + kLook;
  if (!outside_) {
    const absl::StatusOr<v1::Campaign> campaign = client.GetCampaign(campaign_);
    if (!campaign.ok()) return std::nullopt;  // the watch finds out
    outside_ = campaign->spec().chooser().kind() == v1::CHOOSER_KIND_OUTSIDE;
    if (!*outside_) return std::nullopt;
  }
  const absl::StatusOr<v1::Situation> situation = client.GetSituation(campaign_);
  if (!situation.ok() || !situation->waits() || situation->deadline().seconds() == told_) return std::nullopt;
  told_ = situation->deadline().seconds();
  const std::string name = ShortName(campaign_);
  return absl::StrCat("waits ", WaitsText(*situation, now), ": pawl propose ", name, " VARIABLE=VALUE", flags_,
                      "; pawl situation ", name, flags_, " says what there is");
}

}  // namespace pawl
