// What a campaign gained, as measured.
#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "1.750x to 1.850x in 15 pairs"; empty where nothing was compared.
std::string IntervalText(const v1::Comparison& interval);

// "iteration 4 beside the start: 1.800x (1.750x to 1.850x in 15 pairs); by the steps since the last such
// comparison 1.830x"; empty where it was not measured.
std::string TotalGainText(const v1::TotalGain& gain);

// "target: the goal is reached"; empty where nothing was kept.
std::string TierText(v1::SuccessTier tier);

}  // namespace pawl
