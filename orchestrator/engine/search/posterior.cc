#include "orchestrator/engine/search/posterior.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace pawl {

double SumAt(const PlaceTable& table, const Point& point) {
  double sum = 0;
  for (size_t i = 0; i < table.size(); ++i) sum += point[i] < table[i].size() ? table[i][point[i]] : 0;
  return sum;
}

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Observation = Posterior::Observation;

constexpr double kMeanVariance = 1;  // of the constant, in units of the spread's
constexpr double kMostSds = 5;       // a parameter stays within so many standard deviations of its prior

// The order of the parameters: ordered rates, named rates, then these.
enum Variance { kJoint, kSeparate, kNugget, kVariances };

std::vector<PosteriorSettings::Prior> Priors(size_t variables, const PosteriorSettings& settings) {
  std::vector<PosteriorSettings::Prior> priors(variables, settings.ordered_rate);
  priors.insert(priors.end(), variables, settings.named_rate);
  for (const auto& prior : {settings.joint, settings.separate, settings.nugget}) priors.push_back(prior);
  return priors;
}

// The newest half, and the fastest of the older ones.
std::vector<Observation> Bounded(std::vector<Observation> observations, size_t most) {
  if (observations.size() <= most) return observations;
  const auto newest = observations.end() - static_cast<ptrdiff_t>(most / 2);
  std::stable_sort(observations.begin(), newest,
                   [](const auto& a, const auto& b) { return a.log_speed > b.log_speed; });
  observations.erase(observations.begin() + static_cast<ptrdiff_t>(most - most / 2), newest);
  return observations;
}

double CausesMeanAt(const std::vector<KnownCause>& causes, const Point& point) {
  double mean = 0;
  for (const KnownCause& cause : causes) mean += cause.worth * SumAt(cause.serves, point);
  return mean;
}

// By point and cause: what the cause adds, in its standard deviations.
MatrixXd CausesOf(const std::vector<KnownCause>& causes, const std::vector<Point>& points, double scale) {
  MatrixXd of(points.size(), causes.size());
  for (size_t c = 0; c < causes.size(); ++c) {
    for (size_t p = 0; p < points.size(); ++p) of(p, c) = causes[c].sd * SumAt(causes[c].serves, points[p]) / scale;
  }
  return of;
}

// Observations as the process sees them.
struct Standardised {
  VectorXd values;     // log speeds without the known causes, the mean and the scale
  VectorXd variances;  // of the measurements, in units of the scale
  MatrixXd causes;     // CausesOf
  double mean = 0, scale = 1;

  Standardised(const std::vector<Observation>& observations, const std::vector<KnownCause>& known,
               const PosteriorSettings& settings) {
    const auto n = static_cast<Eigen::Index>(observations.size());
    values.resize(n);
    variances.resize(n);
    std::vector<Point> points;
    for (Eigen::Index i = 0; i < n; ++i) {
      const Observation& observation = observations[static_cast<size_t>(i)];
      values[i] = observation.log_speed - CausesMeanAt(known, observation.point);
      variances[i] = observation.variance;
      points.push_back(observation.point);
    }
    mean = values.mean();
    values.array() -= mean;
    const double prior = settings.spread_weight * settings.spread * settings.spread;
    scale = std::sqrt((prior + values.squaredNorm()) / (settings.spread_weight + static_cast<double>(n)));
    values /= scale;
    variances /= scale * scale;
    causes = CausesOf(known, points, scale);
  }
};

// The covariance of observations for some parameters, and the posterior density of the parameters.
struct Kernel {
  const std::vector<Observation>& observations;
  const Scales& scales;
  const Standardised& data;
  std::vector<PosteriorSettings::Prior> priors;

  std::vector<MatrixXd> correlations;
  double joint = 0, separate = 0, nugget = 0;
  MatrixXd together, covariance;  // lower triangles; `together` is the joint part
  Eigen::LLT<MatrixXd> factor;
  VectorXd weights;
  double mean = 0;

  size_t variables() const { return scales.size(); }

  void Set(const Posterior::Parameters& parameters) {
    correlations.resize(variables());
    for (size_t v = 0; v < variables(); ++v) {
      // A value that is not in its list has the place past its end.
      const size_t side = scales[v].size() + 1;
      const double ordered = std::exp(parameters[v]);
      const double named = scales[v].size() > 2 ? std::exp(parameters[variables() + v]) : 0;
      MatrixXd& table = correlations[v];
      table.setOnes(side, side);
      for (size_t a = 0; a < side; ++a) {
        for (size_t b = 0; b < a; ++b) {
          const double distance = a < scales[v].size() ? std::abs(scales[v][a] - scales[v][b]) : 1;
          table(a, b) = table(b, a) = std::exp(-ordered * distance - named);
        }
      }
    }
    joint = std::exp(parameters[2 * variables() + kJoint]);
    separate = std::exp(parameters[2 * variables() + kSeparate]) / static_cast<double>(variables());
    nugget = std::exp(parameters[2 * variables() + kNugget]);
  }

  void Solve() {
    const auto n = static_cast<Eigen::Index>(observations.size());
    together.resize(n, n);
    covariance.noalias() = data.causes * data.causes.transpose();
    if (data.causes.cols() == 0) covariance.setZero(n, n);
    for (Eigen::Index b = 0; b < n; ++b) {
      const Point& at = observations[static_cast<size_t>(b)].point;
      for (Eigen::Index a = b; a < n; ++a) {
        const Point& other = observations[static_cast<size_t>(a)].point;
        double product = joint, sum = 0;
        for (size_t v = 0; v < correlations.size(); ++v) {
          const double correlation = correlations[v](other[v], at[v]);
          product *= correlation;
          sum += correlation;
        }
        together(a, b) = product;
        covariance(a, b) += product + separate * sum;
      }
      covariance(b, b) += nugget + data.variances[b];
    }
    factor.compute(covariance);
    const VectorXd ones = VectorXd::Ones(n), of_ones = factor.solve(ones);
    mean = of_ones.dot(data.values) / (1 / kMeanVariance + of_ones.sum());
    weights = factor.solve(data.values - mean * ones);
  }

  // Negative logarithm of the density, but for a constant.
  double Loss(const Posterior::Parameters& parameters) const {
    double loss = 0.5 * (data.values.array() - mean).matrix().dot(weights) + 0.5 * mean * mean / kMeanVariance;
    for (Eigen::Index i = 0; i < factor.matrixLLT().rows(); ++i) loss += std::log(factor.matrixLLT()(i, i));
    for (size_t i = 0; i < priors.size(); ++i) {
      const double off = (parameters[i] - std::log(priors[i].median)) / priors[i].sd;
      loss += 0.5 * off * off;
    }
    return std::isfinite(loss) ? loss : INFINITY;
  }

  std::vector<double> Gradient(const Posterior::Parameters& parameters) const {
    const auto n = static_cast<Eigen::Index>(observations.size());
    MatrixXd slope = factor.solve(MatrixXd::Identity(n, n));  // of the loss by the covariance, twice
    slope.noalias() -= weights * weights.transpose();
    std::vector<MatrixXd> by_places;
    for (const MatrixXd& table : correlations) by_places.push_back(MatrixXd::Zero(table.rows(), table.cols()));
    double of_joint = 0, of_separate = 0;
    for (Eigen::Index b = 0; b < n; ++b) {
      const Point& at = observations[static_cast<size_t>(b)].point;
      of_joint += 0.5 * slope(b, b) * together(b, b);
      of_separate += 0.5 * slope(b, b) * separate * static_cast<double>(variables());
      for (Eigen::Index a = b + 1; a < n; ++a) {
        const Point& other = observations[static_cast<size_t>(a)].point;
        const double product = slope(a, b) * together(a, b), each = slope(a, b) * separate;
        of_joint += product;
        for (size_t v = 0; v < by_places.size(); ++v) {
          const double own = each * correlations[v](other[v], at[v]);
          of_separate += own;
          by_places[v](other[v], at[v]) += product + own;
        }
      }
    }
    std::vector<double> gradient(priors.size());
    for (size_t v = 0; v < variables(); ++v) {
      const auto side = static_cast<Eigen::Index>(scales[v].size());
      const double ordered = std::exp(parameters[v]);
      const double named = side > 2 ? std::exp(parameters[variables() + v]) : 0;
      for (Eigen::Index a = 0; a <= side; ++a) {
        for (Eigen::Index b = 0; b <= side; ++b) {
          if (a == b) continue;
          const bool listed = a < side && b < side;
          const double distance =
              listed ? std::abs(scales[v][static_cast<size_t>(a)] - scales[v][static_cast<size_t>(b)]) : 1;
          gradient[v] -= ordered * distance * by_places[v](a, b);
          gradient[variables() + v] -= named * by_places[v](a, b);
        }
      }
    }
    gradient[2 * variables() + kJoint] = of_joint;
    gradient[2 * variables() + kSeparate] = of_separate;
    gradient[2 * variables() + kNugget] = 0.5 * nugget * slope.trace();
    for (size_t i = 0; i < priors.size(); ++i) {
      gradient[i] += (parameters[i] - std::log(priors[i].median)) / (priors[i].sd * priors[i].sd);
    }
    return gradient;
  }
};

}  // namespace

Posterior::Parameters Posterior::Fit(const std::vector<Observation>& observations, const Scales& scales,
                                     const std::vector<KnownCause>& causes, const PosteriorSettings& settings) {
  const std::vector<PosteriorSettings::Prior> priors = Priors(scales.size(), settings);
  Parameters parameters;
  for (const auto& prior : priors) parameters.push_back(std::log(prior.median));
  if (observations.size() < 3) return parameters;
  const std::vector<Observation> bounded = Bounded(observations, settings.most_observations);
  const Standardised data(bounded, causes, settings);
  Kernel kernel{bounded, scales, data, priors, {}, 0, 0, 0, {}, {}, {}, {}, 0};
  // Resilient propagation: the steps follow the signs of the gradient, so that parameters of any size move.
  std::vector<double> steps(priors.size(), 0.4), before(priors.size(), 0);
  Parameters best = parameters;
  double least = INFINITY;
  for (int step = 0; step <= settings.fit_steps; ++step) {
    kernel.Set(parameters);
    kernel.Solve();
    const double loss = kernel.Loss(parameters);
    if (loss < least) {
      least = loss;
      best = parameters;
    }
    if (step == settings.fit_steps || kernel.factor.info() != Eigen::Success) break;
    const std::vector<double> gradient = kernel.Gradient(parameters);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const double turn = gradient[i] * before[i];
      steps[i] = turn > 0 ? std::min(1.0, 1.3 * steps[i]) : turn < 0 ? 0.5 * steps[i] : steps[i];
      const double middle = std::log(priors[i].median), reach = kMostSds * priors[i].sd;
      if (gradient[i] != 0) parameters[i] += gradient[i] > 0 ? -steps[i] : steps[i];
      parameters[i] = std::clamp(parameters[i], middle - reach, middle + reach);
    }
    before = gradient;
  }
  return best;
}

Posterior::Posterior(std::vector<Observation> observations, const Scales& scales, std::vector<KnownCause> causes,
                     const Parameters& parameters, const PosteriorSettings& settings)
    : observations_(Bounded(std::move(observations), settings.most_observations)), causes_(std::move(causes)) {
  const Standardised data(observations_, causes_, settings);
  Kernel kernel{observations_, scales, data, Priors(scales.size(), settings), {}, 0, 0, 0, {}, {}, {}, {}, 0};
  kernel.Set(parameters);
  kernel.Solve();
  correlations_ = std::move(kernel.correlations);
  joint_ = kernel.joint;
  separate_ = kernel.separate;
  nugget_ = kernel.nugget;
  scale_ = data.scale;
  mean_ = data.mean + scale_ * kernel.mean;
  causes_of_ = data.causes;
  weights_ = std::move(kernel.weights);
  inverse_variances_ = kernel.covariance.diagonal().cwiseInverse();
  cholesky_ = kernel.factor.matrixL();
}

MatrixXd Posterior::CovarianceOf(const std::vector<Point>& points) const {
  MatrixXd covariance(observations_.size(), points.size());
  covariance.noalias() = causes_of_ * CausesOf(causes_, points, scale_).transpose();
  if (causes_.empty()) covariance.setZero();
  for (Eigen::Index p = 0; p < covariance.cols(); ++p) {
    const Point& point = points[static_cast<size_t>(p)];
    for (Eigen::Index o = 0; o < covariance.rows(); ++o) {
      const Point& at = observations_[static_cast<size_t>(o)].point;
      double product = joint_, sum = 0;
      for (size_t v = 0; v < correlations_.size(); ++v) {
        const double correlation = correlations_[v](at[v], point[v]);
        product *= correlation;
        sum += correlation;
      }
      covariance(o, p) += product + separate_ * sum;
    }
  }
  return covariance;
}

std::vector<Posterior::Normal> Posterior::Predict(const std::vector<Point>& points) const {
  const MatrixXd covariance = CovarianceOf(points);
  const VectorXd means = covariance.transpose() * weights_;
  const MatrixXd causes = CausesOf(causes_, points, scale_);
  const MatrixXd explained = cholesky_.triangularView<Eigen::Lower>().solve(covariance);
  const double own = joint_ + separate_ * static_cast<double>(correlations_.size()) + nugget_;
  std::vector<Normal> normals;
  for (Eigen::Index p = 0; p < means.size(); ++p) {
    const double variance = own + causes.row(p).squaredNorm() - explained.col(p).squaredNorm();
    normals.push_back({.mean = mean_ + scale_ * means[p] + CausesMean(points[static_cast<size_t>(p)]),
                       .sd = scale_ * std::sqrt(std::max(variance, nugget_))});
  }
  return normals;
}

double Posterior::CausesMean(const Point& point) const { return CausesMeanAt(causes_, point); }

double Posterior::Similarity(const Point& a, const Point& b) const {
  double product = 1;
  for (size_t v = 0; v < correlations_.size(); ++v) product *= correlations_[v](a[v], b[v]);
  return product;
}

Posterior::Neighbourhood::Neighbourhood(const Posterior& posterior, const Point& centre) {
  const size_t variables = centre.size();
  const auto n = static_cast<Eigen::Index>(posterior.observations_.size());
  // By variable and observation: the covariance without the variable's own correlation, which is multiplied with the
  // first and added to the second.
  MatrixXd factors(n, variables), sums(n, variables);
  std::vector<double> before(variables + 1, posterior.joint_);
  for (Eigen::Index o = 0; o < n; ++o) {
    const Point& at = posterior.observations_[static_cast<size_t>(o)].point;
    double sum = 0, after = 1;
    for (size_t v = 0; v < variables; ++v) {
      const double correlation = posterior.correlations_[v](at[v], centre[v]);
      before[v + 1] = before[v] * correlation;
      sum += correlation;
    }
    for (size_t v = variables; v-- > 0;) {
      const double correlation = posterior.correlations_[v](at[v], centre[v]);
      factors(o, v) = before[v] * after;
      sums(o, v) = posterior.separate_ * (sum - correlation);
      after *= correlation;
    }
  }
  const double own = posterior.joint_ + posterior.separate_ * static_cast<double>(variables) + posterior.nugget_;
  Point point = centre;
  VectorXd covariances(n);
  for (size_t v = 0; v < variables; ++v) {
    const MatrixXd& table = posterior.correlations_[v];
    std::vector<Normal>& bounds = bounds_.emplace_back();
    for (Eigen::Index place = 0; place < table.rows(); ++place) {
      point[v] = static_cast<uint16_t>(place);
      for (Eigen::Index o = 0; o < n; ++o) {
        const double correlation = table(posterior.observations_[static_cast<size_t>(o)].point[v], place);
        covariances[o] = factors(o, v) * correlation + sums(o, v) + posterior.separate_ * correlation;
      }
      double variance = own;
      if (!posterior.causes_.empty()) {
        const MatrixXd causes = CausesOf(posterior.causes_, {point}, posterior.scale_);
        covariances.noalias() += posterior.causes_of_ * causes.row(0).transpose();
        variance += causes.squaredNorm();
      }
      const double explained = (covariances.array().square() * posterior.inverse_variances_.array()).maxCoeff();
      bounds.push_back({.mean = posterior.mean_ + posterior.scale_ * covariances.dot(posterior.weights_) +
                                posterior.CausesMean(point),
                        .sd = posterior.scale_ * std::sqrt(std::max(variance - explained, posterior.nugget_))});
    }
    point[v] = centre[v];
  }
}

double ExpectedImprovement(const Posterior::Normal& log_speed, double best) {
  const double gain = log_speed.mean - best;
  if (!(log_speed.sd > 0)) return std::max(0.0, gain);
  const double z = gain / log_speed.sd;
  const double density = std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI);
  return std::max(0.0, gain * ProbabilityAbove(log_speed, best) + log_speed.sd * density);
}

double ProbabilityAbove(const Posterior::Normal& log_speed, double level) {
  if (!(log_speed.sd > 0)) return log_speed.mean > level ? 1 : 0;
  return 0.5 * std::erfc((level - log_speed.mean) / log_speed.sd / std::sqrt(2.0));
}

}  // namespace pawl
