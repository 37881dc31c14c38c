#include "orchestrator/engine/search/model.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <cstdlib>

namespace pawl {
namespace {

constexpr int kMaxApart = 4;  // places: values that are farther apart are as correlated as these

// No exceptions: samples of a faulty worker may be infinite, and must not end the process.
namespace policies = boost::math::policies;
using Normal = boost::math::normal_distribution<
    double,
    policies::policy<policies::domain_error<policies::ignore_error>, policies::overflow_error<policies::ignore_error>,
                     policies::underflow_error<policies::ignore_error>, policies::promote_double<false>>>;

// The newest half, and the fastest of the older ones.
std::vector<SpeedModel::Sample> Bounded(std::vector<SpeedModel::Sample> samples, size_t limit) {
  if (samples.size() <= limit) return samples;
  const auto newest = samples.end() - static_cast<ptrdiff_t>(limit / 2);
  const size_t older = limit - limit / 2;
  std::stable_sort(samples.begin(), newest, [](const auto& a, const auto& b) { return a.log_speed > b.log_speed; });
  samples.erase(samples.begin() + static_cast<ptrdiff_t>(older), newest);
  return samples;
}

// Four independent sums: a single one would wait for the latency of each addition.
double Dot(const double* a, const double* b, size_t count) {
  double sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

SpeedModel::SpeedModel(std::vector<Sample> samples, const ModelSettings& settings, const Scales& scales)
    : settings_(settings), samples_(Bounded(std::move(samples), static_cast<size_t>(settings.max_points))) {
  if (samples_.empty()) return;
  FillCorrelations(scales);
  const double variables = static_cast<double>(correlations_.size());
  const double sum = settings_.main_effects + settings_.interactions + settings_.by_places + settings_.by_scales;
  main_weight_ = settings_.main_effects / sum / variables;
  pair_weight_ = variables > 1 ? settings_.interactions / sum / (variables * (variables - 1)) : 0;
  places_weight_ = settings_.by_places / sum;
  scales_weight_ = settings_.by_scales / sum;
  Solve();
}

void SpeedModel::FillCorrelations(const Scales& scales) {
  const size_t variables = samples_[0].point.size();
  for (size_t i = 0; i < variables; ++i) {
    // A value that is not in its list has the place past its end.
    const size_t side = scales[i].size() + 1;
    std::vector<Correlation>& table = correlations_.emplace_back(side * side);
    sides_.push_back(side);
    for (size_t a = 0; a < side; ++a) {
      for (size_t b = 0; b < a; ++b) {
        const int apart = static_cast<int>(a - b);
        Correlation& correlation = table[a * side + b];
        correlation.main = std::pow(settings_.neighbour_correlation, apart);
        correlation.by_places = std::pow(settings_.place_correlation, (1 + std::min(apart, kMaxApart)) / 2.0);
        const double distance = a < scales[i].size() ? std::abs(scales[i][a] - scales[i][b]) : 1;
        correlation.by_scales = std::exp(-std::max(settings_.min_distance, distance) / settings_.length_scale);
        correlation.inverse_places = 1 / correlation.by_places;
        correlation.inverse_scales = 1 / correlation.by_scales;
        table[b * side + a] = correlation;
      }
    }
  }
}

double SpeedModel::Covariance(double main, double squares, double by_places, double by_scales) const {
  // The sum over all pairs of variables of the product of both correlations is main * main - squares.
  return main_weight_ * main + pair_weight_ * (main * main - squares) + places_weight_ * by_places +
         scales_weight_ * by_scales;
}

void SpeedModel::Solve() {
  const size_t n = samples_.size();
  double sum = 0, squares = 0;
  for (const Sample& sample : samples_) sum += sample.log_speed;
  mean_ = sum / static_cast<double>(n);
  for (const Sample& sample : samples_) squares += (sample.log_speed - mean_) * (sample.log_speed - mean_);
  sd_ = std::max(settings_.min_sd, std::sqrt(squares / static_cast<double>(n)));

  cholesky_.assign(n * n, 0);
  weights_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Neighbourhood neighbourhood(*this, samples_[i].point);
    const uint16_t own = samples_[i].point[0];
    double* row = &cholesky_[i * n];
    for (size_t j = 0; j <= i; ++j) {
      double rest = neighbourhood.CovarianceWith(j, 0, own);
      if (i == j) rest += settings_.noise * settings_.noise;
      rest -= Dot(row, &cholesky_[j * n], j);
      row[j] = i == j ? std::sqrt(std::max(rest, 1e-12)) : rest / cholesky_[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const double standardised = (samples_[i].log_speed - mean_) / sd_;
    weights_[i] = (standardised - Dot(&cholesky_[i * n], weights_.data(), i)) / cholesky_[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    double rest = weights_[i];
    for (size_t k = i + 1; k < n; ++k) rest -= cholesky_[k * n + i] * weights_[k];
    weights_[i] = rest / cholesky_[i * n + i];
  }
}

SpeedModel::Neighbourhood::Neighbourhood(const SpeedModel& model, Point centre)
    : model_(model), centre_(std::move(centre)), sums_(model.samples_.size()) {
  for (size_t s = 0; s < sums_.size(); ++s) {
    const Point& sample = model_.samples_[s].point;
    Sums& sums = sums_[s];
    for (size_t i = 0; i < centre_.size(); ++i) {
      const Correlation& correlation = model_.Of(i, centre_[i], sample[i]);
      sums.main += correlation.main;
      sums.squares += correlation.main * correlation.main;
      sums.by_places *= correlation.by_places;
      sums.by_scales *= correlation.by_scales;
    }
  }
}

double SpeedModel::Neighbourhood::CovarianceWith(size_t sample, size_t variable, uint16_t place) const {
  const Sums& sums = sums_[sample];
  const uint16_t there = model_.samples_[sample].point[variable];
  const Correlation& without = model_.Of(variable, centre_[variable], there);
  const Correlation& with = model_.Of(variable, place, there);
  return model_.Covariance(sums.main - without.main + with.main,
                           sums.squares - without.main * without.main + with.main * with.main,
                           sums.by_places * without.inverse_places * with.by_places,
                           sums.by_scales * without.inverse_scales * with.by_scales);
}

double SpeedModel::Neighbourhood::Mean(size_t variable, uint16_t place) const {
  double mean = 0;
  for (size_t i = 0; i < sums_.size(); ++i) mean += model_.weights_[i] * CovarianceWith(i, variable, place);
  return model_.mean_ + model_.sd_ * mean;
}

SpeedModel::Posterior SpeedModel::Neighbourhood::Predict(size_t variable, uint16_t place) const {
  const size_t n = sums_.size();
  std::vector<double> explained(n);
  const double variables = static_cast<double>(centre_.size());
  double mean = 0, variance = n == 0 ? 1 : model_.Covariance(variables, variables, 1, 1);
  for (size_t i = 0; i < n; ++i) {
    const double covariance = CovarianceWith(i, variable, place);
    mean += model_.weights_[i] * covariance;
    const double* row = &model_.cholesky_[i * n];
    explained[i] = (covariance - Dot(row, explained.data(), i)) / row[i];
    variance -= explained[i] * explained[i];
  }
  return {.mean = model_.mean_ + model_.sd_ * mean, .sd = model_.sd_ * std::sqrt(std::max(variance, 0.0))};
}

double ExpectedImprovement(const SpeedModel::Posterior& posterior, double best) {
  const double gain = posterior.mean - best;
  if (posterior.sd <= 0) return std::max(0.0, gain);
  return std::max(0.0, gain * ProbabilityAbove(posterior, best) + posterior.sd * pdf(Normal(), gain / posterior.sd));
}

double ProbabilityAbove(const SpeedModel::Posterior& posterior, double level) {
  if (posterior.sd <= 0) return posterior.mean > level ? 1 : 0;
  return cdf(Normal(), (posterior.mean - level) / posterior.sd);
}

}  // namespace pawl
