#pragma once

#include <cstdint>
#include <vector>

#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/validate/checked_call.h"

namespace pawl {

// An output of fewer values may happen to be small as a whole, as a single sum whose terms cancel: rounding is then no
// small part of it, and its norm says little.
inline constexpr int64_t kFewElements = 64;
// So many draws in a row must be off in nothing but the norm of such an output.
inline constexpr int kRoundingTries = 4;

// The call is off by the norm of an output of few elements alone.
bool MayBeRounding(const v1::Plan& plan, const CheckedCall& call);

// Where many calls were checked: errors of outputs of few elements relative to what such an output is in most calls
// with the bundle's own inputs, where it is smaller than that.
void RelateToTypical(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws, v1::CheckReply* check);

}  // namespace pawl
