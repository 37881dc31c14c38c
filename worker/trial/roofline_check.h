#pragma once

#include <optional>
#include <string>

#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/plan.pb.h"
#include "pawl/v1/recording.pb.h"

namespace pawl {

// The failure of a variant whose warm or cold time at a plan's size lies below `share` of what the GPU can do. Nothing
// where the GPU is not in profiles/gpus, or the bundle does not say its work.
std::optional<v1::Failure> BelowRoofline(const std::string& gpu, const v1::Bundle& bundle, const v1::Plan& plan,
                                         double warm_us, double cold_us, double share = 1);

// A warning where the baseline is faster than the GPU can do the bundle's work at a plan's size: it computes less, or
// [work] says too much. Empty: it is not.
std::string BaselineBelowRoofline(const std::string& gpu, const v1::Bundle& bundle, const v1::Plan& plan,
                                  const v1::BaselineTime& time);

}  // namespace pawl
