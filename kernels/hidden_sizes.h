#pragma once

#include <cstdint>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

// Sizes beside the ladder that validation runs, so that a kernel that is right only where it is timed is caught: the
// smallest size of the ladder with the [hidden] dimensions replaced, first by primes, then by one less or one more
// than a multiple of a power of two or of a variable's value. Empty without [hidden]. The same seed gives the same.
std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed);

}  // namespace pawl
