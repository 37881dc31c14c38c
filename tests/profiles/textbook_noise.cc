#include "tests/profiles/textbook_noise.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "tests/profiles/median.h"

namespace pawl {

PairSource TextbookNoise::Process(double gain, std::mt19937_64& random) const {
  std::normal_distribution<double> normal;
  const double level = process * normal(random);
  const double slope = drift * normal(random) / 7;  // a pair
  const double wave = drift * normal(random);
  const double phase = std::uniform_real_distribution<double>(0, 2 * std::numbers::pi)(random);
  return [=, noise = *this, &random, normal = normal, at = 0.0](int count) mutable {
    PairBatch batch;
    for (int i = 0; i < count; ++i) {
      std::vector<double> sides[2];
      for (int segment = 0; segment < 4; ++segment) {
        const bool parent = segment == 0 || segment == 3;
        for (int k = 0; k < noise.measurements / 2; ++k, at += 1.0 / (2 * noise.measurements)) {
          const double log_time = level + slope * at + wave * std::sin(at + phase) + noise.measurement * normal(random);
          sides[parent].push_back(std::exp(log_time) / (parent ? 1 : 1 + gain));
        }
      }
      batch.log_ratios.push_back(std::log(Median(sides[1]) / Median(sides[0])));
    }
    return batch;
  };
}

}  // namespace pawl
