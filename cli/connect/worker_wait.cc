#include "cli/connect/worker_wait.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/names/resource_name.h"
#include "cli/text/failure.h"

namespace pawl {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(500);

}  // namespace

absl::Status WorkerWait::Look(CampaignClient& client, absl::Time now) {
  if (now < next_look_) return absl::OkStatus();
  next_look_ = now + kLook;
  const absl::StatusOr<v1::Campaign> campaign = client.GetCampaign(campaign_);
  if (!campaign.ok()) return absl::OkStatus();  // the watch finds out
  // Of a campaign that nobody has begun, the message says what it waits for.
  if (campaign->state() != v1::WAITING || campaign->message().empty()) {
    since_ = absl::InfiniteFuture();
    return absl::OkStatus();
  }
  since_ = std::min(since_, now);
  if (now - since_ < patience_) return absl::OkStatus();
  v1::ErrorDetail detail;
  detail.set_resource(campaign_);
  detail.set_fix(
      absl::StrCat("it stays in the queue for a worker that can; pawl cancel ", ShortName(campaign_), " ends it"));
  return WithDetail(absl::FailedPreconditionError(campaign->message()), detail);
}

}  // namespace pawl
