#pragma once

#include <cstdint>
#include <vector>

#include "pawl/v1/plan.pb.h"
#include "pawl/v1/runner.pb.h"
#include "worker/validate/checked_call.h"

namespace pawl {

// An output of fewer values may happen to be small as a whole, as a single sum whose terms cancel: rounding is then no
// small part of it, and its norm says little. So may a larger one where no input of floats has more values, as elements
// gathered from a table of four.
inline constexpr int64_t kFewElements = 64;
// So many draws in a row must be off in nothing but the norm of such an output.
inline constexpr int kRoundingTries = 4;

// The call is off by the norms of outputs of few elements alone.
bool MayBeRounding(const v1::Plan& plan, const CheckedCall& call);

// Where many calls were checked: what each output is in most calls with the bundle's own inputs, by its root mean
// square (the median over the calls); of an output of many elements what it is in the first. In the order of outputs.
std::vector<double> TypicalRms(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws,
                               const v1::CheckReply& check);

// Makes errors of outputs of few elements relative to what is typical of them, where they are smaller than that in a
// call. Those of other inputs were relative to the first call with own ones.
void RelateToTypical(const v1::Plan& plan, const std::vector<v1::InputDraw>& draws, v1::CheckReply* check);

}  // namespace pawl
