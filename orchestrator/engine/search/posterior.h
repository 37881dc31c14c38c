#pragma once

// <resolv.h> has a macro of a name that Eigen uses.
#undef _res
#include <Eigen/Core>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "orchestrator/engine/search/point.h"

namespace pawl {

// A sum over variables: what each place of a variable adds, by variable and in it by place; no places: nothing.
using PlaceTable = std::vector<std::vector<double>>;
double SumAt(const PlaceTable& table, const Point& point);

// A cause of speed that is known before anything is measured, such as a rule's finding. A variant's log speed has
// `worth` times the sum of its places' entries in it. The worth is uncertain, and learned with everything else.
struct KnownCause {
  PlaceTable serves;
  double worth = 0;  // prior mean, in log speedup
  double sd = 0;     // prior standard deviation
};

struct PosteriorSettings {
  // Log-normal priors of the kernel's parameters: median, and standard deviation of the logarithm. Each campaign fits
  // the parameters to its own measurements. Variances are shares of the variance
  // of log speed.
  struct Prior {
    double median, sd;
  };
  Prior ordered_rate = {1, 1};   // decay of correlation over the length of a variable's scale
  Prior named_rate = {0.14, 1};  // decay between any two different values of a variable
  // With more variables than this the rates' medians fall in proportion: a space is no rougher for having more of them.
  double rate_variables = 13;
  Prior joint = {1, 1};        // variance of what the variables do together
  Prior separate = {0.37, 1};  // variance of what each of them does by itself, summed over them
  Prior nugget = {0.01, 1};    // variance of what no variable explains
  int fit_steps = 10;
  // Standard deviation of log speed over a space, and the number of measurements that this prior counts as.
  double prior_sd = 0.3;
  double prior_sd_weight = 2;
  // An approximation of this rank: the newest half, and of the others the fastest and some at every speed.
  size_t most_observations = 160;
  size_t most_fitted = 80;  // likewise, for the fit of the parameters
};

// A Gaussian process over variants. Log speed is a constant, plus what each variable does by itself, plus what all of
// them do together, plus known causes. The correlation of two values of a variable is exp(-ordered_rate * distance on
// the scale - named_rate), with rates of the variable's own. Immutable.
class Posterior {
 public:
  struct Observation {
    Point point;
    double log_speed = 0;
    double variance = 0;  // of the measurement
  };
  struct Normal {
    double mean = 0, sd = 0;
  };
  using Parameters = std::vector<double>;  // logarithms of the kernel's parameters
  // By point and variable; those of a variable are next to each other in memory.
  using Places = Eigen::Matrix<uint16_t, Eigen::Dynamic, Eigen::Dynamic>;
  static Places PlacesOf(const std::vector<const Point*>& points, size_t variables);

  // The mode of the parameters' posterior.
  static Parameters Fit(const std::vector<Observation>& observations, const Scales& scales,
                        const std::vector<KnownCause>& causes, const PosteriorSettings& settings);

  // `observations` oldest first; `parameters` as Fit gave them, perhaps for the earlier ones only.
  Posterior(std::vector<Observation> observations, const Scales& scales, std::vector<KnownCause> causes,
            const Parameters& parameters, const PosteriorSettings& settings)
      : Posterior(std::make_shared<const std::vector<KnownCause>>(std::move(causes)), std::move(observations), scales,
                  parameters, settings) {}
  // With causes that others have, too.
  Posterior(std::shared_ptr<const std::vector<KnownCause>> causes, std::vector<Observation> observations,
            const Scales& scales, const Parameters& parameters, const PosteriorSettings& settings);

  // A variant and all that differ from it in one variable: the posterior's means, and upper bounds of its standard
  // deviations, from the one observation that says most about the variant. Far cheaper than Predict.
  class Neighbourhood {
   public:
    Neighbourhood(const Posterior& posterior, const Point& centre);
    const Normal& Bound(size_t variable, uint16_t place) const { return bounds_[first_[variable] + place]; }

   private:
    std::vector<Normal> bounds_;  // by variable, and in it by place
    std::vector<size_t> first_;   // of each variable
  };

  // Of log speed as it would be measured without noise.
  std::vector<Normal> Predict(const std::vector<Point>& points) const;
  // By the known causes' prior alone.
  double CausesMean(const Point& point) const;
  // Correlations of what the variables do together, of a variant with others: 1 for the same variant.
  Eigen::VectorXd Similarities(const Point& point, const Places& others) const;

 private:
  // `causes`: of the points, as CausesOf gives them.
  Eigen::MatrixXd CovarianceOf(const std::vector<Point>& points, const Eigen::MatrixXd& causes) const;

  Places places_;  // of the observations
  std::shared_ptr<const std::vector<KnownCause>> causes_;
  std::vector<Eigen::MatrixXd> correlations_;  // by variable: of the values at two places
  double joint_ = 0, separate_ = 0, nugget_ = 0;
  double mean_ = 0, scale_ = 1;  // of the observations, without the known causes
  Eigen::MatrixXd causes_of_;    // by observation and cause, in units of the scale
  Eigen::MatrixXd cholesky_;
  Eigen::VectorXd weights_;
  Eigen::VectorXd weights_of_causes_;  // by cause
  Eigen::VectorXd inverse_sds_;        // of the single observations, noise included
};

// Of what exceeds `best`, where losses count as 0.
double ExpectedImprovement(const Posterior::Normal& log_speed, double best);
double ProbabilityAbove(const Posterior::Normal& log_speed, double level);

}  // namespace pawl
