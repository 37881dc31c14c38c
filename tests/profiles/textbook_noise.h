#pragma once

#include <random>

#include "profiles/verdict_protocol.h"

namespace pawl {

// Made-up noise of the size GPUs show: a drift of 1 % over a comparison, 0.5 % from process to
// process, 0.7 % from measurement to measurement.
struct TextbookNoise {
  double drift = 0.01;
  double process = 0.005;
  double measurement = 0.007;
  int measurements = 30;

  // The candidate is faster than the parent by `gain`. `random` must outlive the result.
  PairSource Process(double gain, std::mt19937_64& random) const;
};

}  // namespace pawl
