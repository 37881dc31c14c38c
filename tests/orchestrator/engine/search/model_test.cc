#include "orchestrator/engine/search/model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "orchestrator/engine/search/seeded_random.h"

namespace pawl {
namespace {

constexpr int kVariables = 5, kValues = 4;

// Every variable adds its own: the best point is all 3.
double Separable(const Point& point) {
  double sum = 0;
  for (size_t i = 0; i < point.size(); ++i) sum += 0.1 * static_cast<double>(i + 1) * point[i];
  return sum;
}

// Values that lie as far apart as their places.
Scales EvenScales(int variables = kVariables) {
  return Scales(static_cast<size_t>(variables), {0, 1 / 3.0, 2 / 3.0, 1});
}

Point RandomPoint(SeededRandom& random) {
  Point point;
  for (int i = 0; i < kVariables; ++i) point.push_back(static_cast<uint16_t>(random.Below(kValues)));
  return point;
}

std::vector<SpeedModel::Sample> RandomSamples(int count, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<SpeedModel::Sample> samples;
  for (int i = 0; i < count; ++i) {
    const Point point = RandomPoint(random);
    samples.push_back({point, Separable(point)});
  }
  return samples;
}

TEST(SpeedModel, LearnsASeparableFunctionFromAFewSamples) {
  const SpeedModel model(RandomSamples(60, 1), ModelSettings(), EvenScales());
  SeededRandom random(2);
  double squares = 0, around = 0;
  for (int i = 0; i < 200; ++i) {
    const Point point = RandomPoint(random);
    squares += std::pow(model.Mean(point) - Separable(point), 2);
    around += std::pow(Separable(point) - 2.25, 2);  // the error of the mean alone
  }
  EXPECT_LT(squares, 0.03 * around);
}

TEST(SpeedModel, ExpectsMoreOfWhatItKnowsLess) {
  const SpeedModel model({{{0, 0, 0}, 0.0}, {{0, 0, 1}, 0.1}}, ModelSettings(), EvenScales(3));
  EXPECT_LT(model.Predict({0, 0, 0}).sd, 0.2 * model.Predict({3, 3, 3}).sd);
  EXPECT_GT(ExpectedImprovement(model.Predict({3, 3, 3}), 0.1), ExpectedImprovement(model.Predict({0, 0, 0}), 0.1));
}

TEST(SpeedModel, ReproducesWhatWasMeasured) {
  const std::vector<SpeedModel::Sample> samples = RandomSamples(40, 3);
  const SpeedModel model(samples, ModelSettings(), EvenScales());
  for (const SpeedModel::Sample& sample : samples) EXPECT_NEAR(model.Mean(sample.point), sample.log_speed, 0.1);
}

TEST(SpeedModel, NeverExpectsALoss) {
  const SpeedModel model(RandomSamples(40, 4), ModelSettings(), EvenScales());
  SeededRandom random(5);
  for (int i = 0; i < 100; ++i) EXPECT_GE(ExpectedImprovement(model.Predict(RandomPoint(random)), 10), 0);
}

TEST(SpeedModel, KeepsTheBestAndTheNewestOfManySamples) {
  std::vector<SpeedModel::Sample> samples = {{{3, 3, 3, 3, 3}, 4.5}};  // the first, and the best
  for (const SpeedModel::Sample& sample : RandomSamples(500, 6)) samples.push_back(sample);
  const SpeedModel model(samples, {.max_points = 100}, EvenScales());
  EXPECT_NEAR(model.Mean({3, 3, 3, 3, 3}), 4.5, 0.2);
  EXPECT_NEAR(model.Mean(samples.back().point), samples.back().log_speed, 0.2);
}

TEST(SpeedModel, PredictsTheSameFromTheSameSamples) {
  const SpeedModel a(RandomSamples(50, 7), ModelSettings(), EvenScales()),
      b(RandomSamples(50, 7), ModelSettings(), EvenScales());
  EXPECT_EQ(a.Predict({1, 2, 3, 0, 1}).mean, b.Predict({1, 2, 3, 0, 1}).mean);
  EXPECT_EQ(a.Predict({1, 2, 3, 0, 1}).sd, b.Predict({1, 2, 3, 0, 1}).sd);
}

TEST(SpeedModel, WorksWithOneSample) {
  const SpeedModel model({{{0, 0}, 0.0}}, ModelSettings(), EvenScales(2));
  EXPECT_TRUE(std::isfinite(model.Predict({1, 1}).mean));
  EXPECT_GT(model.Predict({1, 1}).sd, 0);
}

TEST(ExpectedImprovement, IsThatOfANormalDistribution) {
  EXPECT_NEAR(ExpectedImprovement({.mean = 0, .sd = 1}, 0), 0.3989422804, 1e-9);
  EXPECT_NEAR(ExpectedImprovement({.mean = 0.3, .sd = 0.2}, 0.2), 0.1 * 0.6914624613 + 0.2 * 0.3520653268, 1e-9);
  EXPECT_EQ(ExpectedImprovement({.mean = 0.3, .sd = 0}, 0.1), 0.3 - 0.1);
  EXPECT_EQ(ExpectedImprovement({.mean = 0.1, .sd = 0}, 0.3), 0);
}

TEST(ProbabilityAbove, IsThatOfANormalDistribution) {
  EXPECT_NEAR(ProbabilityAbove({.mean = 0, .sd = 1}, 1.6448536270), 0.05, 1e-9);
  EXPECT_NEAR(ProbabilityAbove({.mean = 2, .sd = 0.5}, 1), 0.9772498681, 1e-9);
  EXPECT_EQ(ProbabilityAbove({.mean = 2, .sd = 0}, 1), 1);
  EXPECT_EQ(ProbabilityAbove({.mean = 1, .sd = 0}, 2), 0);
}

TEST(ProbabilityAbove, DoesNotThrowForValuesThatAreNotFinite) {
  EXPECT_NO_THROW(ProbabilityAbove({.mean = INFINITY, .sd = 1}, INFINITY));
  EXPECT_NO_THROW(ExpectedImprovement({.mean = NAN, .sd = INFINITY}, 0));
}

}  // namespace
}  // namespace pawl
