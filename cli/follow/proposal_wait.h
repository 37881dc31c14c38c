#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Tells whoever watches a campaign that it waits for a proposal: no event says so. For one thread.
class ProposalWait {
 public:
  // `flags`: what the next command needs to find the orchestrator.
  ProposalWait(std::string campaign, std::string flags) : campaign_(std::move(campaign)), flags_(std::move(flags)) {}

  // A line, once for each wait; looks every other second at most, and not at all where the campaign waits for nobody.
  std::optional<std::string> Look(CampaignClient& client, absl::Time now);

 private:
  const std::string campaign_, flags_;
  std::optional<bool> outside_;  // whether it is a campaign that waits; not known yet
  absl::Time next_look_ = absl::InfinitePast();
  int64_t told_ = 0;  // deadline of the wait that was told of
};

}  // namespace pawl
