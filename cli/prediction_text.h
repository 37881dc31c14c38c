#pragma once

#include <string>

#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "1.10x to 4.00x as fast as its parent, and waves rises".
std::string PredictedText(const v1::Prediction& prediction);

// How it went: "came true: 1.500x; waves 0.01515 → 0.0606 came true".
std::string PredictionOutcomeText(const v1::Prediction& prediction, double measured_speedup);

}  // namespace pawl
