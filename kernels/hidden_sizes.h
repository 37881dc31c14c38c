#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "pawl/v1/bundle.pb.h"

namespace pawl {

inline constexpr size_t kHiddenSizes = 8;       // of every trial
inline constexpr size_t kMoreHiddenSizes = 10;  // of a variant that is about to be kept, beside those

// Sizes beside the ladder that validation runs, so that a kernel that is right only where it is timed is caught: the
// smallest size of the ladder with the [hidden] dimensions replaced. Of every dimension, as far as its range holds
// them, they have the lowest value (1 where that is allowed), the highest, a power of two that the ladder does not
// have, an odd prime, twice an odd number, a multiple of 16 in the upper half that is no power of two, and one less or
// more than a multiple of a tile: odd and even values with certainty. Lowest and highest values of all dimensions come
// together, and one size has the same value in all of them; the rest come in any combination. Smallest first, each
// once: a small range gives fewer. Empty without [hidden]. The same seed gives the same.
std::vector<v1::Size> HiddenSizes(const v1::Bundle& bundle, uint64_t seed);

// The same of further kinds: four and eight times an odd number, next to the ends of the range, multiples of tiles,
// any.
std::vector<v1::Size> MoreHiddenSizes(const v1::Bundle& bundle, uint64_t seed);

// The hidden ranges as a whole, for expressions that must hold everywhere in them: of each dimension its ends, its
// lowest values one by one, so that every remainder by a small tile comes, and some evenly in between; one dimension at
// a time, and all together. Always the same, at most `most`.
std::vector<v1::Size> HiddenSpread(const v1::Bundle& bundle, size_t most);

// A little less than `size` in each [hidden] dimension that is above its range there, which the others never reach: a
// kernel may take whatever is large for the size that is timed. Nothing where no dimension is.
std::optional<v1::Size> SizeBeside(const v1::Bundle& bundle, const v1::Size& size, uint64_t seed);

// Anywhere between the range and `size` in each such dimension, all magnitudes as likely: between the hidden sizes and
// those that are timed may lie most of what a kernel is used at.
std::optional<v1::Size> SizeBetween(const v1::Bundle& bundle, const v1::Size& size, uint64_t seed);

// Some [hidden] dimensions with a hidden value and others above their range, as in one of the timed sizes or beside it:
// a kernel may be right where all are small and where all are large only. At most four, in which each dimension is
// small once where another can be large meanwhile. None has a larger value than its timed size.
std::vector<v1::Size> MixedSizes(const v1::Bundle& bundle, const std::vector<v1::Size>& timed, uint64_t seed);

}  // namespace pawl
