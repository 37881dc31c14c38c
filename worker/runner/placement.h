#pragma once

#include <cstdint>
#include <vector>

#include "pawl/v1/plan.pb.h"
#include "worker/runner/arena.h"

namespace pawl {

// Random numbers that nobody can predict: the operating system's, read in pieces. Not thread-safe.
class SecretRandom {
 public:
  uint64_t Bits();
  // From 0 to `below` - 1; 0 where that is none.
  uint64_t Below(uint64_t below);
  // From 0 to 1.
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

  // For std::shuffle.
  using result_type = uint64_t;
  static constexpr uint64_t min() { return 0; }
  static constexpr uint64_t max() { return ~uint64_t{0}; }
  uint64_t operator()() { return Bits(); }

 private:
  std::vector<uint64_t> pool_;
};

// How far behind multiples of 256 the tensors of one call start, for Arena::For: tensors whose alignment is less start
// at odd multiples of it in half of the calls, all at multiples of 256 in a quarter, and each at any in the others. So
// neither what is right for aligned addresses only, nor what is right for the others only, passes for right. Nor does
// what needs more than 256, or than a larger alignment: each tensor starts at odd multiples of that as often as not.
std::vector<uint64_t> DrawShifts(const v1::Plan& plan, SecretRandom& random);

// How the tensors of several calls lie in a run of memory.
enum class PlacementStyle {
  kPacked,     // one behind another from a random place on
  kGaps,       // the same with random gaps of up to 4 KiB
  kScattered,  // each anywhere
};

// Bytes that the tensors of so many calls need in any style.
uint64_t PlacementBytes(const v1::Plan& a, const v1::Plan& b, int calls);

// Draws places for the tensors of `calls` calls in a run of `bytes`, at multiples of each tensor's alignment, none over
// another: one arena a call. Candidate and parent share the places, so each has room for the larger of both. All calls
// share one place for each static tensor.
std::vector<Arena> DrawPlacement(const v1::Plan& a, const v1::Plan& b, int calls, uint64_t bytes, PlacementStyle style,
                                 SecretRandom& random);

}  // namespace pawl
