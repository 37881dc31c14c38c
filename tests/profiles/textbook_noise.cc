#include "tests/profiles/textbook_noise.h"

#include <cmath>

namespace pawl {

PairSource TextbookNoise::Process(double gain, std::mt19937_64& random) const {
  std::normal_distribution<double> normal;
  const double level = std::log1p(gain) + process * normal(random);
  const double slope = drift * normal(random) / 36;
  return [level, slope, pair = pair, &random, normal, at = 0.0](int count) mutable {
    PairBatch batch;
    for (int i = 0; i < count; ++i, ++at) {
      batch.log_ratios.push_back(level + slope * (at - 18) + pair * normal(random));
    }
    return batch;
  };
}

v1::ProcessNoise TextbookNoise::Known() const {
  v1::ProcessNoise noise;
  noise.set_variance(process * process);
  noise.set_degrees(20);
  return noise;
}

}  // namespace pawl
