#pragma once

#include <random>

#include "profiles/verdict_protocol.h"

namespace pawl {

// Made-up noise of the size GPUs show: the placements of the pairs of one process, a drift over them, and an effect of
// the process itself.
struct TextbookNoise {
  double process = 0.003;
  double pair = 0.01;
  double drift = 0.001;  // over 36 pairs

  // The candidate is faster than the parent by `gain`. `random` must outlive the result.
  PairSource Process(double gain, std::mt19937_64& random) const;
  // As it is known beforehand.
  v1::ProcessNoise Known() const;
};

}  // namespace pawl
