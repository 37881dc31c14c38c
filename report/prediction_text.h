#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "1.10x to 4.00x as fast as its parent, and waves rises".
std::string PredictedText(const v1::Prediction& prediction);

// How it went: "failed: 1.500x came true, waves 0.01515 → 0.01515".
std::string PredictionOutcomeText(const v1::Prediction& prediction, double measured_speedup);

}  // namespace pawl
