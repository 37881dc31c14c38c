#pragma once

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Whether what a change was expected to do came about, apart from the verdict. The time: it gained no less and no more
// than was predicted. The metric: it moved the predicted way; unchecked where either evidence lacks it.
void CheckPrediction(double speedup_over_parent, const v1::Evidence& parent, const v1::Evidence& candidate,
                     v1::Prediction* prediction);

}  // namespace pawl
