#pragma once

#include <vector>

#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Start, best and baseline at every size of the ladder, as far as they were measured. Where no worker timed them beside
// each other, the goal's size has the campaign's own times, and memory is what the variants' plans ask for.
std::vector<v1::SizeTime> SizeTimes(const CampaignState& campaign);

}  // namespace pawl
