#pragma once

#include <vector>

#include "orchestrator/engine/search/point.h"

namespace pawl {

struct ModelSettings {
  int max_points = 112;  // of the newest samples, and of the best ones before them
  // Weights of what is learned: of single variables, of pairs of them, and of whole variants, which is what those do
  // not explain, once by how many places apart values are and once by how far apart on their scales.
  double singles = 0.07;
  double pairs = 0.07;
  double by_places = 0.07;
  double by_scales = 0.79;
  double nearness = 0.5;    // how much of a value's effect its neighbour in the list shares; 0: one-hot
  double alikeness = 0.7;   // what two variants that differ in one variable by one place share of the whole
  double reach = 1.5;       // over scales: how far along one the whole is shared
  double least_step = 0.4;  // over scales: no step counts for less
  double noise = 0.05;      // of a sample, as a share of the samples' spread
  double min_spread = 0.1;  // of log times, while there are too few samples to tell
};

// A Bayesian linear model of log speed over the values of single variables and of pairs of them, with a part for each
// whole variant, from a campaign's own measurements. It is solved in its dual form: what two variants have in common is
// all that counts, so that the number of features does not matter. Nearby values of a variable share a part of their
// effect. Immutable.
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
  SpeedModel(std::vector<Sample> samples, const ModelSettings& settings, const Scales& scales);

  // A point and those that differ from it in one variable: what they have in common with the samples is computed from
  // its own. The model must outlive it.
  class Around {
   public:
    Around(const SpeedModel& model, Point centre);
    double Mean(size_t variable, uint16_t place) const;
    Guess Predict(size_t variable, uint16_t place) const;

   private:
    friend class SpeedModel;
    struct Shared {
      double singles = 0, squares = 0, by_places = 1, by_scales = 1;
    };
    double LikenessTo(size_t sample, size_t variable, uint16_t place) const;

    const SpeedModel& model_;
    const Point centre_;
    std::vector<Shared> shared_;  // with each sample
  };

  double Mean(const Point& point) const { return Around(*this, point).Mean(0, point[0]); }
  Guess Predict(const Point& point) const { return Around(*this, point).Predict(0, point[0]); }

 private:
  // What two values of a variable share. Products are undone by factors: a division takes five times as long.
  struct Like {
    double single = 1, by_places = 1, by_scales = 1, undo_places = 1, undo_scales = 1;
  };
  const Like& Of(size_t variable, uint16_t a, uint16_t b) const {
    return tables_[variable][static_cast<size_t>(a) * sides_[variable] + b];
  }
  // What two variants share, by sums over variables and products over them.
  double Likeness(double singles, double squares, double by_places, double by_scales) const;
  void FillTables(const Scales& scales);
  void Solve();

  const ModelSettings settings_;
  std::vector<Sample> samples_;
  std::vector<std::vector<Like>> tables_;  // by variable, and in it by both places
  std::vector<size_t> sides_;              // of the tables
  double single_weight_ = 0, pair_weight_ = 0, places_weight_ = 0, scales_weight_ = 0;
  double middle_ = 0, spread_ = 1;
  std::vector<double> factor_;   // Cholesky's, row by row
  std::vector<double> weights_;  // of the samples
};

// By how much log speed is expected to exceed `best`, counting 0 where it does not.
double ExpectedImprovement(const SpeedModel::Guess& guess, double best);
// The chance that log speed exceeds `level`.
double ChanceAbove(const SpeedModel::Guess& guess, double level);

}  // namespace pawl
