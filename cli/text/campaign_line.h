#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Where a campaign stands: "attention at main: iteration 5 of 50, best 1.56x over the baseline, goal 2.50x, 57 min
// left". Of its iterations `untried` are not in the recording, and use up no budget.
std::string CampaignLine(const v1::Campaign& campaign, int untried = 0);

}  // namespace pawl
