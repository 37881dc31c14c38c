#pragma once

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Sets whether a change's prediction came true, apart from the verdict. Time: the speedup lies in the predicted range.
// Metric: it moved in the predicted direction; unchecked if either evidence lacks it.
void CheckPrediction(double speedup_over_parent, const v1::Evidence& parent, const v1::Evidence& candidate,
                     v1::Prediction* prediction);

}  // namespace pawl
