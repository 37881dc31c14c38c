#pragma once

#include <optional>
#include <string_view>

#include "orchestrator/security/access.h"

namespace pawl {

// What a call of ours needs.
struct RpcRule {
  Role role;
  // Calls without a deadline are refused: a client that has hung up must not hold anything for ever. Watching goes on
  // for as long as a campaign does.
  bool needs_deadline = true;
};

// By path, "/pawl.v1.CampaignService/GetCampaign". None: no call of ours, or one that nobody gave a role.
std::optional<RpcRule> RuleOfRpc(std::string_view path);

}  // namespace pawl
