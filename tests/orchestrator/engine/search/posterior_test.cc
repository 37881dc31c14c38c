#include "orchestrator/engine/search/posterior.h"

#include <gtest/gtest.h>

#include <cmath>

#include "orchestrator/engine/search/seeded_random.h"

namespace pawl {
namespace {

using Observation = Posterior::Observation;

constexpr int kVariables = 5, kValues = 4;
const PosteriorSettings kSettings;

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

std::vector<Observation> RandomObservations(int count, uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Observation> observations;
  for (int i = 0; i < count; ++i) {
    const Point point = RandomPoint(random);
    observations.push_back({point, Separable(point), 0});
  }
  return observations;
}

Posterior Fitted(const std::vector<Observation>& observations, const Scales& scales,
                 const std::vector<KnownCause>& causes = {}) {
  return Posterior(observations, scales, causes, Posterior::Fit(observations, scales, causes, kSettings), kSettings);
}

TEST(Posterior, LearnsASeparableFunctionFromAFewObservations) {
  const Posterior posterior = Fitted(RandomObservations(60, 1), EvenScales());
  SeededRandom random(2);
  double squares = 0, around = 0;
  for (int i = 0; i < 200; ++i) {
    const Point point = RandomPoint(random);
    squares += std::pow(posterior.Predict({point})[0].mean - Separable(point), 2);
    around += std::pow(Separable(point) - 2.25, 2);  // the error of the mean alone
  }
  EXPECT_LT(squares, 0.02 * around);
}

TEST(Posterior, ReproducesWhatWasMeasuredAndIsSurerOfIt) {
  const std::vector<Observation> observations = RandomObservations(20, 3);
  const Posterior posterior = Fitted(observations, EvenScales());
  for (const Observation& observation : observations) {
    const Posterior::Normal at = posterior.Predict({observation.point})[0];
    EXPECT_NEAR(at.mean, observation.log_speed, 0.1);
    EXPECT_LT(at.sd, 0.25);
  }
}

TEST(Posterior, TrustsANoisyMeasurementLess) {
  const auto at_origin = [](double variance) {
    const std::vector<Observation> observations = {{{0, 0}, 0, 0}, {{3, 3}, 0, 0}, {{0, 3}, 1, variance}};
    return Posterior(observations, EvenScales(2), {}, Posterior::Fit({}, EvenScales(2), {}, kSettings), kSettings)
        .Predict({{0, 3}})[0];
  };
  EXPECT_GT(at_origin(0).mean, 0.8);
  EXPECT_LT(at_origin(1).mean, 0.5);
  EXPECT_GT(at_origin(1).sd, at_origin(0).sd);
}

TEST(Posterior, FindsOutWhichVariableMatters) {
  SeededRandom random(4);
  std::vector<Observation> observations;
  for (int i = 0; i < 30; ++i) {
    const Point point = RandomPoint(random);
    observations.push_back({point, point[2] == 3 ? 1.0 : 0.0, 0});
  }
  const Posterior posterior = Fitted(observations, EvenScales());
  const Point here = {0, 0, 0, 0, 0}, other_third = {0, 0, 3, 0, 0}, other_first = {3, 0, 0, 0, 0};
  const Eigen::VectorXd similarities =
      posterior.Similarities(here, Posterior::PlacesOf({&other_third, &other_first, &here}, kVariables));
  EXPECT_LT(similarities[0], 0.7);
  EXPECT_GT(similarities[1], 0.7);
  EXPECT_EQ(similarities[2], 1);
}

// It has more observations than it counts, and nearly all of them are alike.
TEST(Posterior, KeepsTheSlowOnesByWhichAVariableMatters) {
  SeededRandom random(6);
  std::vector<Observation> observations;
  for (int i = 0; i < 300; ++i) {
    Point point = RandomPoint(random);
    if (i >= 40) point[2] = 3;
    observations.push_back({point, point[2] == 3 ? 1.0 : 0.0, 0});
  }
  const Posterior posterior = Fitted(observations, EvenScales());
  EXPECT_NEAR(posterior.Predict({{1, 1, 0, 1, 1}})[0].mean, 0, 0.2);
  EXPECT_NEAR(posterior.Predict({{1, 1, 3, 1, 1}})[0].mean, 1, 0.1);
}

TEST(Posterior, BoundsWhatANeighbourhoodIsPredicted) {
  const Posterior posterior = Fitted(RandomObservations(25, 5), EvenScales());
  const Point centre = {1, 1, 1, 1, 1};
  const Posterior::Neighbourhood neighbourhood(posterior, centre);
  for (size_t v = 0; v < kVariables; ++v) {
    for (uint16_t place = 0; place < kValues; ++place) {
      Point point = centre;
      point[v] = place;
      const Posterior::Normal exact = posterior.Predict({point})[0], &bound = neighbourhood.Bound(v, place);
      EXPECT_NEAR(bound.mean, exact.mean, 1e-9);
      EXPECT_GE(bound.sd, exact.sd - 1e-9);
    }
  }
}

// A cause that is worth 0.3 for each place of the first variable.
KnownCause FirstVariable() { return {.serves = {{0, 1, 2, 3}}, .worth = 0.3, .sd = 0.3}; }

TEST(Posterior, BeginsWithWhatIsKnownBeforeAnythingIsMeasured) {
  const Posterior posterior = Fitted({{{0, 0}, 0.5, 0}}, EvenScales(2), {FirstVariable()});
  EXPECT_NEAR(posterior.CausesMean({2, 0}), 0.6, 1e-9);
  EXPECT_GT(posterior.Predict({{2, 0}})[0].mean, 0.9);
  EXPECT_NEAR(posterior.Predict({{0, 1}})[0].mean, 0.5, 0.1);
}

// A campaign with an edit has the source as one more place, of which no cause knows.
TEST(Posterior, BoundsNeighboursOfPointsThatAreLongerThanItsCauses) {
  const Posterior posterior = Fitted({{{0, 0}, 0.5, 0}, {{1, 1}, 0.7, 0}}, EvenScales(2), {FirstVariable()});
  const Posterior::Neighbourhood neighbourhood(posterior, {0, 0});
  for (uint16_t place = 0; place < kValues; ++place) {
    EXPECT_NEAR(neighbourhood.Bound(0, place).mean, posterior.Predict({{place, 0}})[0].mean, 1e-9);
    EXPECT_NEAR(neighbourhood.Bound(1, place).mean, posterior.Predict({{0, place}})[0].mean, 1e-9);
  }
}

TEST(Posterior, CorrectsWhatACauseIsWorth) {
  const std::vector<Observation> slower = {{{0, 0, 0}, 0, 0}, {{1, 0, 0}, -0.3, 0}, {{1, 3, 0}, -0.3, 0}};
  const Posterior before = Fitted({slower[0]}, EvenScales(3), {FirstVariable()});
  const Posterior after = Fitted(slower, EvenScales(3), {FirstVariable()});
  EXPECT_GT(before.Predict({{3, 0, 0}})[0].mean, 0.5);
  EXPECT_LT(after.Predict({{3, 0, 0}})[0].mean, 0);
}

TEST(Posterior, HoldsTheOutcomeInItsIntervals) {
  SeededRandom random(6);
  int held = 0, made = 0;
  for (uint64_t seed = 10; seed < 30; ++seed) {
    const Posterior posterior = Fitted(RandomObservations(12, seed), EvenScales());
    for (int i = 0; i < 20; ++i) {
      const Point point = RandomPoint(random);
      const Posterior::Normal at = posterior.Predict({point})[0];
      held += std::abs(Separable(point) - at.mean) < 1.2816 * at.sd;
      ++made;
    }
  }
  EXPECT_GT(held, 0.7 * made);
}

TEST(Posterior, StaysFiniteWhereMeasurementsContradictEachOther) {
  std::vector<Observation> observations;
  for (int i = 0; i < 40; ++i) observations.push_back({{1, 1, 1, 1, 1}, i % 2 == 0 ? 0.0 : 1.0, 1e-6});
  const Posterior posterior = Fitted(observations, EvenScales());
  const Posterior::Normal at = posterior.Predict({{1, 1, 1, 1, 1}})[0];
  EXPECT_NEAR(at.mean, 0.5, 0.1);
  EXPECT_TRUE(std::isfinite(at.sd) && at.sd > 0);
}

TEST(Posterior, KeepsTheNewestAndTheFastestOfVeryMany) {
  std::vector<Observation> observations = RandomObservations(2000, 7);
  const Posterior posterior = Fitted(observations, EvenScales());
  EXPECT_NEAR(posterior.Predict({{3, 3, 3, 3, 3}})[0].mean, Separable({3, 3, 3, 3, 3}), 0.2);
}

TEST(ExpectedImprovement, IsTheGainWithoutDoubtAndMoreWithIt) {
  EXPECT_DOUBLE_EQ(ExpectedImprovement({.mean = 0.3, .sd = 0}, 0.1), 0.2);
  EXPECT_DOUBLE_EQ(ExpectedImprovement({.mean = 0.1, .sd = 0}, 0.3), 0);
  EXPECT_GT(ExpectedImprovement({.mean = 0.3, .sd = 0.2}, 0.1), 0.2);
  EXPECT_NEAR(ExpectedImprovement({.mean = 0, .sd = 1}, 0), 0.3989, 1e-4);
  EXPECT_DOUBLE_EQ(ProbabilityAbove({.mean = 0, .sd = 1}, 0), 0.5);
}

}  // namespace
}  // namespace pawl
