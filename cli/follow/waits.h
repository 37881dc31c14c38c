// What a campaign that is followed waits for, which no event says.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"
#include "cli/connect/connection.h"

namespace pawl {

// Notes for how long no worker can begin with a campaign. For one thread.
class WorkerWait {
 public:
  WorkerWait(std::string campaign, absl::Duration patience) : campaign_(std::move(campaign)), patience_(patience) {}

  // FAILED_PRECONDITION: none could for as long as the patience lasts, with what each lacks. To be called often; looks
  // twice a second at most.
  absl::Status Look(CampaignClient& client, SteadyTime now);

 private:
  const std::string campaign_;
  const absl::Duration patience_;
  SteadyTime next_look_ = SteadyTime::InfinitePast();
  SteadyTime since_ = SteadyTime::InfiniteFuture();  // that none can take it
};

// Tells who watches a campaign that it waits for a proposal. For one thread.
class ProposalWait {
 public:
  // `flags`: what the next command needs to find the orchestrator.
  ProposalWait(std::string campaign, std::string flags) : campaign_(std::move(campaign)), flags_(std::move(flags)) {}

  // A line, once for each wait; looks every other second at most, and not at all where the campaign waits for nobody.
  std::optional<std::string> Look(CampaignClient& client, SteadyTime now);

 private:
  const std::string campaign_, flags_;
  std::optional<bool> outside_;  // whether it is a campaign that waits; not known yet
  SteadyTime next_look_ = SteadyTime::InfinitePast();
  int64_t told_ = -1;  // deadline of the wait that was told of
};

}  // namespace pawl
