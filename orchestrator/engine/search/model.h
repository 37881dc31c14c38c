#pragma once

#include <vector>

#include "orchestrator/engine/search/point.h"

namespace pawl {

struct ModelSettings {
  int max_points = 112;  // the newest half of the samples, and the fastest ones before them
  // Prior variance of each part of the model, relative to the others: main effects of single variables, interactions of
  // pairs of variables, and two residuals of the whole variant. The first residual is correlated by how many places
  // values are apart in their lists, the second by how far apart they are on their scales.
  double main_effects = 0.07;
  double interactions = 0.07;
  double by_places = 0.07;
  double by_scales = 0.79;
  double neighbour_correlation = 0.5;  // between the main effects of neighbouring values; 0: independent (one-hot)
  double place_correlation = 0.7;      // by places: between variants that differ in one variable by one place
  double length_scale = 1.5;           // by scales: of the exponential covariance along each scale
  double min_distance = 0.4;           // by scales: shorter distances between different values count as this
  double noise = 0.05;                 // standard deviation of a sample's noise, as a share of the samples' own
  double min_sd = 0.1;                 // of log speeds, while there are too few samples to estimate it
};

// A Gaussian process over variants that predicts log speed from a campaign's own measurements: a Bayesian linear model
// of main effects and pairwise interactions of variables, with a residual for each whole variant. It is solved in its
// dual form, by the covariance of samples, so its cost does not depend on the number of features. Immutable.
class SpeedModel {
 public:
  struct Sample {
    Point point;
    double log_speed = 0;  // over the start
  };
  // Posterior distribution of log speed over the start.
  struct Posterior {
    double mean = 0;
    double sd = 0;
  };

  // `samples` oldest first.
  SpeedModel(std::vector<Sample> samples, const ModelSettings& settings, const Scales& scales);

  // A point and all points that differ from it in one variable. Their covariances with the samples are updated from
  // those of the centre. The model must outlive it.
  class Neighbourhood {
   public:
    Neighbourhood(const SpeedModel& model, Point centre);
    double Mean(size_t variable, uint16_t place) const;
    Posterior Predict(size_t variable, uint16_t place) const;

   private:
    friend class SpeedModel;
    struct Sums {
      double main = 0, squares = 0, by_places = 1, by_scales = 1;
    };
    double CovarianceWith(size_t sample, size_t variable, uint16_t place) const;

    const SpeedModel& model_;
    const Point centre_;
    std::vector<Sums> sums_;  // of the centre and each sample, over the variables
  };

  double Mean(const Point& point) const { return Neighbourhood(*this, point).Mean(0, point[0]); }
  Posterior Predict(const Point& point) const { return Neighbourhood(*this, point).Predict(0, point[0]); }

 private:
  // Between two values of one variable, for each part of the model. The inverses are stored because a division takes
  // five times as long as a multiplication.
  struct Correlation {
    double main = 1, by_places = 1, by_scales = 1, inverse_places = 1, inverse_scales = 1;
  };
  const Correlation& Of(size_t variable, uint16_t a, uint16_t b) const {
    return correlations_[variable][static_cast<size_t>(a) * sides_[variable] + b];
  }
  // Prior covariance of two variants, in units of the samples' variance. `main` and `squares` are sums over variables
  // of the main effects' correlations and of their squares; `by_places` and `by_scales` are products over variables.
  double Covariance(double main, double squares, double by_places, double by_scales) const;
  void FillCorrelations(const Scales& scales);
  void Solve();

  const ModelSettings settings_;
  std::vector<Sample> samples_;
  std::vector<std::vector<Correlation>> correlations_;  // by variable, and in it by both places
  std::vector<size_t> sides_;                           // of those tables
  double main_weight_ = 0, pair_weight_ = 0, places_weight_ = 0, scales_weight_ = 0;
  double mean_ = 0, sd_ = 1;      // of the samples
  std::vector<double> cholesky_;  // factor of the samples' covariance matrix with noise, row by row
  std::vector<double> weights_;   // that matrix's inverse times the standardised samples
};

// Of log speed over `best`: the mean of what exceeds it, where losses count as 0.
double ExpectedImprovement(const SpeedModel::Posterior& posterior, double best);
// That log speed exceeds `level`.
double ProbabilityAbove(const SpeedModel::Posterior& posterior, double level);

}  // namespace pawl
