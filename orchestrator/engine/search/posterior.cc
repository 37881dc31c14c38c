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

constexpr double kMeanVariance = 1;  // of the constant, as a share of that of log speed
constexpr double kMostSds = 5;       // a parameter stays within this many standard deviations of its prior

// The order of the parameters: ordered rates, named rates, then these.
enum Variance { kJoint, kSeparate, kNugget, kVariances };

std::vector<PosteriorSettings::Prior> Priors(size_t variables, const PosteriorSettings& settings) {
  PosteriorSettings::Prior ordered = settings.ordered_rate, named = settings.named_rate;
  const double share = std::min(1.0, settings.rate_variables / static_cast<double>(variables));
  ordered.median *= share;
  named.median *= share;
  std::vector<PosteriorSettings::Prior> priors(variables, ordered);
  priors.insert(priors.end(), variables, named);
  for (const auto& prior : {settings.joint, settings.separate, settings.nugget}) priors.push_back(prior);
  return priors;
}

// The newest half; of the older ones the fastest, and as many that are spread evenly over the rest by speed: the
// fastest may differ only in what does not matter.
std::vector<Observation> Bounded(std::vector<Observation> observations, size_t most) {
  if (observations.size() <= most) return observations;
  const auto newest = observations.end() - static_cast<ptrdiff_t>(most / 2);
  std::stable_sort(observations.begin(), newest,
                   [](const auto& a, const auto& b) { return a.log_speed > b.log_speed; });
  const size_t kept = most - most / 2, fastest = kept / 2, spread = kept - fastest;
  const size_t rest = static_cast<size_t>(newest - observations.begin()) - fastest;
  for (size_t i = 0; i < spread; ++i) observations[fastest + i] = observations[fastest + (i + 1) * rest / spread - 1];
  observations.erase(observations.begin() + static_cast<ptrdiff_t>(kept), newest);
  return observations;
}

double CausesMeanAt(const std::vector<KnownCause>& causes, const Point& point) {
  double mean = 0;
  for (const KnownCause& cause : causes) mean += cause.worth * SumAt(cause.serves, point);
  return mean;
}

const Point& PointIn(const Point& point) { return point; }
const Point& PointIn(const Observation& observation) { return observation.point; }

// By point and cause: what the cause adds, in its standard deviations.
template <typename At>
MatrixXd CausesOf(const std::vector<KnownCause>& causes, const std::vector<At>& points, double scale) {
  MatrixXd of = MatrixXd::Zero(points.size(), causes.size());
  for (size_t c = 0; c < causes.size(); ++c) {
    for (size_t v = 0; v < causes[c].serves.size(); ++v) {
      const std::vector<double>& places = causes[c].serves[v];
      for (size_t p = 0; p < points.size() && !places.empty(); ++p) {
        const uint16_t place = PointIn(points[p])[v];
        if (place < places.size()) of(p, c) += places[place];
      }
    }
    of.col(c) *= causes[c].sd / scale;
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
    for (Eigen::Index i = 0; i < n; ++i) {
      const Observation& observation = observations[static_cast<size_t>(i)];
      values[i] = observation.log_speed - CausesMeanAt(known, observation.point);
      variances[i] = observation.variance;
    }
    mean = values.mean();
    values.array() -= mean;
    const double prior = settings.prior_sd_weight * settings.prior_sd * settings.prior_sd;
    scale = std::sqrt((prior + values.squaredNorm()) / (settings.prior_sd_weight + static_cast<double>(n)));
    values /= scale;
    variances /= scale * scale;
    causes = CausesOf(known, observations, scale);
  }
};

using Places = Posterior::Places;

std::vector<const Point*> PointsOf(const std::vector<Observation>& observations) {
  std::vector<const Point*> points;
  for (const Observation& observation : observations) points.push_back(&observation.point);
  return points;
}

// The covariance of observations for some parameters, and the posterior density of the parameters.
struct Kernel {
  const Scales& scales;
  const Standardised& data;
  Places places;
  std::vector<PosteriorSettings::Prior> priors;

  std::vector<MatrixXd> correlations;
  double joint = 0, separate = 0, nugget = 0;
  MatrixXd together, summed, covariance;  // lower triangles: products of the correlations, sums, and the whole
  Eigen::LLT<MatrixXd> factor;
  VectorXd weights;
  double mean = 0;

  Kernel(const std::vector<Observation>& observations, const Scales& scales, const Standardised& data,
         const PosteriorSettings& settings)
      : scales(scales),
        data(data),
        places(Posterior::PlacesOf(PointsOf(observations), scales.size())),
        priors(Priors(scales.size(), settings)) {}

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
    const Eigen::Index n = places.rows();
    together.setOnes(n, n);
    summed.setZero(n, n);
    for (Eigen::Index v = 0; v < places.cols(); ++v) {
      const uint16_t* const at = places.col(v).data();
      for (Eigen::Index b = 0; b < n; ++b) {
        const double* const of_place = correlations[static_cast<size_t>(v)].col(at[b]).data();
        double* const products = together.col(b).data();
        double* const sums = summed.col(b).data();
        for (Eigen::Index a = b; a < n; ++a) {
          products[a] *= of_place[at[a]];
          sums[a] += of_place[at[a]];
        }
      }
    }
    covariance = joint * together + separate * summed;
    if (data.causes.cols() > 0) covariance.noalias() += data.causes * data.causes.transpose();
    covariance.diagonal() += data.variances;
    covariance.diagonal().array() += nugget;
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
    const Eigen::Index n = places.rows();
    MatrixXd slope = factor.solve(MatrixXd::Identity(n, n));  // of the loss by the covariance, twice
    slope.noalias() -= weights * weights.transpose();
    // Every pair but those of an observation with itself is in the lower triangle and counts twice.
    double of_joint = 0, of_separate = 0;
    MatrixXd by_product(n, n);
    for (Eigen::Index b = 0; b < n; ++b) {
      by_product.col(b).tail(n - b) = joint * slope.col(b).tail(n - b).cwiseProduct(together.col(b).tail(n - b));
      of_joint += by_product.col(b).tail(n - b).sum() - 0.5 * by_product(b, b);
      of_separate +=
          separate * (slope.col(b).tail(n - b).dot(summed.col(b).tail(n - b)) - 0.5 * slope(b, b) * summed(b, b));
    }
    std::vector<MatrixXd> by_places;
    for (const MatrixXd& table : correlations) by_places.push_back(MatrixXd::Zero(table.rows(), table.cols()));
    for (Eigen::Index v = 0; v < places.cols(); ++v) {
      const uint16_t* const at = places.col(v).data();
      for (Eigen::Index b = 0; b < n; ++b) {
        const double* const of_place = correlations[static_cast<size_t>(v)].col(at[b]).data();
        double* const by_place = by_places[static_cast<size_t>(v)].col(at[b]).data();
        const double* const products = by_product.col(b).data();
        const double* const slopes = slope.col(b).data();
        for (Eigen::Index a = b + 1; a < n; ++a) {
          by_place[at[a]] += products[a] + separate * slopes[a] * of_place[at[a]];
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
  const std::vector<Observation> bounded = Bounded(observations, settings.most_fitted);
  const Standardised data(bounded, causes, settings);
  Kernel kernel(bounded, scales, data, settings);
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
      const double median = std::log(priors[i].median), reach = kMostSds * priors[i].sd;
      if (gradient[i] != 0) parameters[i] += gradient[i] > 0 ? -steps[i] : steps[i];
      parameters[i] = std::clamp(parameters[i], median - reach, median + reach);
    }
    before = gradient;
  }
  return best;
}

Posterior::Places Posterior::PlacesOf(const std::vector<const Point*>& points, size_t variables) {
  Places places(points.size(), variables);
  for (Eigen::Index p = 0; p < places.rows(); ++p) {
    for (Eigen::Index v = 0; v < places.cols(); ++v) {
      places(p, v) = (*points[static_cast<size_t>(p)])[static_cast<size_t>(v)];
    }
  }
  return places;
}

Posterior::Posterior(std::shared_ptr<const std::vector<KnownCause>> causes, std::vector<Observation> observations,
                     const Scales& scales, const Parameters& parameters, const PosteriorSettings& settings)
    : causes_(std::move(causes)) {
  observations = Bounded(std::move(observations), settings.most_observations);
  const Standardised data(observations, *causes_, settings);
  Kernel kernel(observations, scales, data, settings);
  kernel.Set(parameters);
  kernel.Solve();
  places_ = std::move(kernel.places);
  correlations_ = std::move(kernel.correlations);
  joint_ = kernel.joint;
  separate_ = kernel.separate;
  nugget_ = kernel.nugget;
  scale_ = data.scale;
  mean_ = data.mean + scale_ * kernel.mean;
  causes_of_ = data.causes;
  weights_ = std::move(kernel.weights);
  inverse_sds_ = kernel.covariance.diagonal().cwiseSqrt().cwiseInverse();
  weights_of_causes_ = causes_of_.transpose() * weights_;
  cholesky_ = kernel.factor.matrixL();
}

MatrixXd Posterior::CovarianceOf(const std::vector<Point>& points, const MatrixXd& causes) const {
  const Eigen::Index n = places_.rows();
  MatrixXd covariance(n, points.size());
  VectorXd products(n), sums(n);
  for (Eigen::Index p = 0; p < covariance.cols(); ++p) {
    const Point& point = points[static_cast<size_t>(p)];
    products.setConstant(joint_);
    sums.setZero();
    for (size_t v = 0; v < correlations_.size(); ++v) {
      const uint16_t* const at = places_.col(static_cast<Eigen::Index>(v)).data();
      const double* const of_place = correlations_[v].col(point[v]).data();
      for (Eigen::Index o = 0; o < n; ++o) {
        products[o] *= of_place[at[o]];
        sums[o] += of_place[at[o]];
      }
    }
    covariance.col(p) = products + separate_ * sums;
  }
  if (!causes_->empty()) covariance.noalias() += causes_of_ * causes.transpose();
  return covariance;
}

std::vector<Posterior::Normal> Posterior::Predict(const std::vector<Point>& points) const {
  const MatrixXd causes = CausesOf(*causes_, points, scale_);
  const MatrixXd covariance = CovarianceOf(points, causes);
  const VectorXd means = covariance.transpose() * weights_;
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

double Posterior::CausesMean(const Point& point) const { return CausesMeanAt(*causes_, point); }

VectorXd Posterior::Similarities(const Point& point, const Places& others) const {
  VectorXd products = VectorXd::Ones(others.rows());
  for (size_t v = 0; v < correlations_.size(); ++v) {
    const uint16_t* const at = others.col(static_cast<Eigen::Index>(v)).data();
    const double* const of_place = correlations_[v].col(point[v]).data();
    for (Eigen::Index o = 0; o < products.size(); ++o) products[o] *= of_place[at[o]];
  }
  return products;
}

namespace {

// The largest (factors[i] * table[at[i]] + rests[i])^2. Two maxima, so that one need not wait for the other.
double LargestSquare(Eigen::Index n, const double* factors, const double* table, const uint16_t* at,
                     const double* rests) {
  double even = 0, odd = 0;
  for (Eigen::Index i = 0; i + 1 < n; i += 2) {
    even = std::max(even, std::abs(factors[i] * table[at[i]] + rests[i]));
    odd = std::max(odd, std::abs(factors[i + 1] * table[at[i + 1]] + rests[i + 1]));
  }
  if (n % 2 == 1) even = std::max(even, std::abs(factors[n - 1] * table[at[n - 1]] + rests[n - 1]));
  const double most = std::max(even, odd);
  return most * most;
}

}  // namespace

Posterior::Neighbourhood::Neighbourhood(const Posterior& posterior, const Point& centre) {
  const auto variables = static_cast<Eigen::Index>(centre.size());
  const Eigen::Index n = posterior.places_.rows();
  // By observation and variable: the correlation with the centre; the product of the joint part without it.
  MatrixXd correlations(n, variables), factors(n, variables);
  VectorXd product = VectorXd::Constant(n, posterior.joint_);
  for (Eigen::Index v = 0; v < variables; ++v) {
    const uint16_t* const at = posterior.places_.col(v).data();
    const auto variable = static_cast<size_t>(v);
    const double* const of_place = posterior.correlations_[variable].col(centre[variable]).data();
    for (Eigen::Index o = 0; o < n; ++o) correlations(o, v) = of_place[at[o]];
    factors.col(v) = product;
    product.array() *= correlations.col(v).array();
  }
  product.setOnes();
  for (Eigen::Index v = variables; v-- > 0;) {
    factors.col(v).array() *= product.array();
    product.array() *= correlations.col(v).array();
  }
  VectorXd rest = posterior.separate_ * correlations.rowwise().sum();
  const size_t causes = posterior.causes_->size();
  VectorXd at_centre = VectorXd::Zero(static_cast<Eigen::Index>(causes));
  if (causes > 0) {
    at_centre = CausesOf(*posterior.causes_, std::vector<Point>{centre}, posterior.scale_).row(0);
    rest.noalias() += posterior.causes_of_ * at_centre;
  }
  const double own_at_centre = posterior.joint_ + posterior.separate_ * static_cast<double>(variables) +
                               posterior.nugget_ + at_centre.squaredNorm();
  const double causes_mean = posterior.CausesMean(centre);
  // Covariances with the observations are linear in the correlations at the changed variable: what depends on nothing
  // else is summed once for all of its places.
  VectorXd scaled(n), others(n), with_causes(n), weight_of_place;
  std::vector<size_t> serving;  // causes that a change of the variable serves
  size_t places = 0;
  for (const MatrixXd& table : posterior.correlations_) places += static_cast<size_t>(table.rows());
  bounds_.reserve(places);
  first_.reserve(centre.size());
  for (Eigen::Index v = 0; v < variables; ++v) {
    const auto variable = static_cast<size_t>(v);
    const uint16_t* const at = posterior.places_.col(v).data();
    const MatrixXd& table = posterior.correlations_[variable];
    scaled = factors.col(v).array() + posterior.separate_;
    others = rest - posterior.separate_ * correlations.col(v);
    weight_of_place.setZero(table.rows());
    for (Eigen::Index o = 0; o < n; ++o) weight_of_place[at[o]] += scaled[o] * posterior.weights_[o];
    const double weight_of_others = others.dot(posterior.weights_);
    scaled.array() *= posterior.inverse_sds_.array();
    others.array() *= posterior.inverse_sds_.array();
    serving.clear();
    for (size_t c = 0; c < causes; ++c) {
      const PlaceTable& serves = (*posterior.causes_)[c].serves;
      const bool known = variable < serves.size();  // the source that an edit made: no cause is about it
      if (known && !serves[variable].empty()) serving.push_back(c);
    }
    first_.push_back(bounds_.size());
    for (Eigen::Index place = 0; place < table.rows(); ++place) {
      const double* const of_place = table.col(place).data();
      double variance = own_at_centre, mean = causes_mean;
      double weight = weight_of_place.dot(table.col(place)) + weight_of_others;
      const double* rests = others.data();
      for (const size_t c : serving) {
        const KnownCause& cause = (*posterior.causes_)[c];
        const std::vector<double>& serves = cause.serves[variable];
        const auto entry = [&](size_t of) { return of < serves.size() ? serves[of] : 0; };
        const double more = entry(static_cast<size_t>(place)) - entry(centre[variable]);
        if (more == 0) continue;
        const auto column = static_cast<Eigen::Index>(c);
        const double step = cause.sd * more / posterior.scale_;
        mean += cause.worth * more;
        variance += step * (2 * at_centre[column] + step);
        weight += step * posterior.weights_of_causes_[column];
        if (rests == others.data()) with_causes = others;
        rests = with_causes.data();
        with_causes.array() += step * posterior.causes_of_.col(column).array() * posterior.inverse_sds_.array();
      }
      const double explained = LargestSquare(n, scaled.data(), of_place, at, rests);
      bounds_.push_back({.mean = posterior.mean_ + posterior.scale_ * weight + mean,
                         .sd = posterior.scale_ * std::sqrt(std::max(variance - explained, posterior.nugget_))});
    }
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
