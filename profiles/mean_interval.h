#pragma once

#include <span>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// The mean of log ratios with the bounds of Student's t that enclose it at the confidence, two-sided. `pairs` is how
// many there are. UNCLEAR, with equal bounds, where there are fewer than two or one is not finite. No other result is
// set: what this is used for decides nothing.
v1::Comparison MeanInterval(std::span<const double> log_ratios, double confidence = 0.99);

}  // namespace pawl
