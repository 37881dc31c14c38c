#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "cli/connect/connection.h"

namespace pawl {

// Notes for how long no worker can begin with a campaign. For one thread.
class WorkerWait {
 public:
  WorkerWait(std::string campaign, absl::Duration patience) : campaign_(std::move(campaign)), patience_(patience) {}

  // FAILED_PRECONDITION: none could for as long as the patience lasts, with what each lacks. To be called often; looks
  // twice a second at most.
  absl::Status Look(CampaignClient& client, absl::Time now);

 private:
  const std::string campaign_;
  const absl::Duration patience_;
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time since_ = absl::InfiniteFuture();  // that none can take it
};

}  // namespace pawl
