#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

struct FollowOptions {
  int64_t after_sequence = 0;
  Need reconnect = Need::kRunning;                            // what to do about an orchestrator that is gone
  std::function<bool(const v1::WatchCampaignResponse&)> see;  // false: enough
  // Several times a second, whether something comes or not. An error ends the following with it.
  std::function<absl::Status()> tick;
  std::function<void(const std::string&)> say;  // about the connection
  std::function<void()> reconnected;            // the orchestrator may be another one
};

// Hands on a campaign's events until it has ended, `see` has enough, or the user interrupts (CANCELLED). An
// orchestrator that stops answering is looked for again, as long as it takes, and the events go on after the last that
// came; one that never answered is an error.
absl::Status Follow(Connection& connection, const std::string& campaign, const FollowOptions& options);

}  // namespace pawl
