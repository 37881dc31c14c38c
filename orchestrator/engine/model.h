#pragma once

#include <vector>

#include "orchestrator/engine/point.h"

namespace pawl {

struct ModelSettings {
  int max_points = 128;     // of the newest samples, and of the best ones before them
  double pairs = 1;         // weight of pairs of variables beside single ones
  double whole = 1;         // weight of the whole variant: what no single variable or pair explains
  double nearness = 0.5;    // how much of a value's effect its neighbour in the list shares; 0: one-hot
  double alikeness = 0.7;   // what two variants that differ in one variable share of the whole
  double noise = 0.05;      // of a sample, as a share of the samples' spread
  double min_spread = 0.1;  // of log times, while there are too few samples to tell
};

// A Bayesian linear model of log speed over the values of single variables and of pairs of them, with a part for each
// whole variant, from a campaign's own measurements. It is solved in its dual form: what two variants have in common is
// all that counts, so that the number of features does not matter. Nearby values in a variable's list share a part of
// their effect. Immutable.
class SpeedModel {
 public:
  struct Sample {
    Point point;
    double log_speed = 0;  // over the start
  };
  struct Guess {
    double mean = 0;  // of log speed over the start
    double sd = 0;
  };

  // `samples` oldest first.
  SpeedModel(std::vector<Sample> samples, const ModelSettings& settings);

  double Mean(const Point& point) const;
  Guess Predict(const Point& point) const;
  // By how much log speed at `point` is expected to exceed `best`, counting 0 where it does not.
  double ExpectedImprovement(const Point& point, double best) const;

 private:
  double Likeness(const Point& a, const Point& b) const;
  void Solve();

  const ModelSettings settings_;
  std::vector<Sample> samples_;
  std::vector<double> near_, alike_;  // by distance in a list
  double middle_ = 0, spread_ = 1;
  std::vector<double> factor_;   // Cholesky's, row by row
  std::vector<double> weights_;  // of the samples
};

}  // namespace pawl
