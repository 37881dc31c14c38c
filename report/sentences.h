#pragma once

#include <string>

#include "google/protobuf/repeated_ptr_field.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// "1.750x to 1.850x in 15 pairs"; empty where nothing was compared.
std::string IntervalText(const v1::Comparison& interval);

// "iteration 4 against the start: 1.800x (1.750x to 1.850x in 15 pairs); estimated from the steps: 1.830x;
// interleaved with the baseline: 2.490x (2.470x to 2.510x in 24 placements)"; empty where it was not measured.
// The estimate is what the campaign said before: the product of the steps, corrected by earlier measurements.
std::string TotalGainText(const v1::TotalGain& gain);

// "2.490x (2.470x to 2.510x)": the best variant's speed over the baseline, with bounds where both were timed
// interleaved in one process; without where it is a product of ratios.
std::string OverBaselineText(const v1::Campaign& campaign);

// What a campaign says of sizes: of the variant that is the best now, where it was measured beside the start. Empty: it
// was not.
google::protobuf::RepeatedPtrField<v1::SizeTime> MeasuredSizes(const v1::Campaign& campaign);

// Where the final variant is slower, and than what: "large: 0.294x the start's speed, 0.256x the baseline's; b4: 0.900x
// the baseline's speed". Empty: nowhere.
std::string LossesText(const google::protobuf::RepeatedPtrField<v1::SizeTime>& sizes);

// The rule of a portfolio: "iteration 14 where S <= 512, otherwise iteration 10".
std::string RuleText(const v1::Portfolio& portfolio);

// "1.220x over the start, 2.100x over the baseline; iteration 14 where S <= 512, otherwise iteration 10".
std::string PortfolioClaim(const v1::Portfolio& portfolio);

// "target: the goal is reached"; empty where nothing was kept.
std::string TierText(v1::SuccessTier tier);

// "1.10x to 4.00x as fast as its parent, and waves rises".
std::string PredictedText(const v1::Prediction& prediction);

// How it went, naming what failed: "failed: 1.500x as predicted, waves did not rise (0.01515 → 0.01515)".
std::string PredictionOutcomeText(const v1::Prediction& prediction, double measured_speedup);

}  // namespace pawl
