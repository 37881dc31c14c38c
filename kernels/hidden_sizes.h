#pragma once

#include <cstdint>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

inline constexpr int kHiddenSizes = 6;       // of every trial
inline constexpr int kMoreHiddenSizes = 10;  // of a variant that is about to be kept, beside those

// Sizes beside the ladder that validation runs, so that a kernel that is right only where it is timed is caught: the
// smallest size of the ladder with the [hidden] dimensions replaced. Of every dimension, as far as its range holds them,
// the first six sizes have the lowest value (1 where that is allowed), the highest, a power of two, a prime, a multiple
// of 16 that is no power of two, and one less or more than a multiple of a tile: odd and even values with certainty.
// Lowest and highest values of all dimensions come together, the rest in any combination. Further sizes draw each
// dimension from these kinds and others (twice, four times and eight times an odd number, any). Smallest first, each
// once: a small range gives fewer. Empty without [hidden]. The same seed gives the same.
std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed, int count = kHiddenSizes);

}  // namespace pawl
