#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The story of a campaign: start and gain, a block for each iteration (finding, change, prediction, measurement,
// verdict), how often each rule was right. `iterations` are all of them in order, as ListIterations has them. No line
// is longer than `width`.
std::string CampaignExplanation(const v1::Campaign& campaign, const std::vector<v1::Iteration>& iterations, int width);

}  // namespace pawl
