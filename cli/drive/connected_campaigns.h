#pragma once

#include <memory>

#include "agent/campaigns/campaigns.h"
#include "cli/connect/connection.h"

namespace pawl {

// CampaignService through a connection, which is found again where the orchestrator was another command's and ended
// with it. The connection must outlive it, and nobody else may use it meanwhile.
std::shared_ptr<Campaigns> CampaignsOf(Connection& connection);

}  // namespace pawl
