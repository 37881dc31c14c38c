#include "orchestrator/engine/model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace pawl {
namespace {

constexpr int kFarthest = 64;  // places apart: beyond, distance makes no difference

// The newest half, and of those before the best.
std::vector<SpeedModel::Sample> Bounded(std::vector<SpeedModel::Sample> samples, size_t limit) {
  if (samples.size() <= limit) return samples;
  const auto newest = samples.end() - static_cast<ptrdiff_t>(limit / 2);
  const size_t older = limit - limit / 2;
  std::stable_sort(samples.begin(), newest, [](const auto& a, const auto& b) { return a.log_speed > b.log_speed; });
  samples.erase(samples.begin() + static_cast<ptrdiff_t>(older), newest);
  return samples;
}

}  // namespace

SpeedModel::SpeedModel(std::vector<Sample> samples, const ModelSettings& settings)
    : settings_(settings), samples_(Bounded(std::move(samples), static_cast<size_t>(settings.max_points))) {
  for (int distance = 0; distance < kFarthest; ++distance) {
    near_.push_back(std::pow(settings_.nearness, distance));
    alike_.push_back(distance == 0 ? 1 : std::pow(settings_.alikeness, (1 + std::min(distance, 4)) / 2.0));
  }
  Solve();
}

double SpeedModel::Likeness(const Point& a, const Point& b) const {
  double sum = 0, squares = 0, whole = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t distance = static_cast<size_t>(std::min(std::abs(a[i] - b[i]), kFarthest - 1));
    sum += near_[distance];
    squares += near_[distance] * near_[distance];
    whole *= alike_[distance];
  }
  // Over all pairs of variables, the product of both.
  const double n = static_cast<double>(a.size()), of_pairs = n > 1 ? n * (n - 1) : 1;
  return (sum / n + settings_.pairs * (sum * sum - squares) / of_pairs + settings_.whole * whole) /
         (1 + settings_.pairs + settings_.whole);
}

void SpeedModel::Solve() {
  const size_t n = samples_.size();
  if (n == 0) return;
  double sum = 0, squares = 0;
  for (const Sample& sample : samples_) sum += sample.log_speed;
  middle_ = sum / static_cast<double>(n);
  for (const Sample& sample : samples_) squares += (sample.log_speed - middle_) * (sample.log_speed - middle_);
  spread_ = std::max(settings_.min_spread, std::sqrt(squares / static_cast<double>(n)));

  factor_.assign(n * n, 0);
  weights_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    double* row = &factor_[i * n];
    for (size_t j = 0; j <= i; ++j) {
      const double* other = &factor_[j * n];
      double left = Likeness(samples_[i].point, samples_[j].point);
      if (i == j) left += settings_.noise * settings_.noise;
      for (size_t k = 0; k < j; ++k) left -= row[k] * other[k];
      row[j] = i == j ? std::sqrt(std::max(left, 1e-12)) : left / other[j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    double left = (samples_[i].log_speed - middle_) / spread_;
    for (size_t k = 0; k < i; ++k) left -= factor_[i * n + k] * weights_[k];
    weights_[i] = left / factor_[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    double left = weights_[i];
    for (size_t k = i + 1; k < n; ++k) left -= factor_[k * n + i] * weights_[k];
    weights_[i] = left / factor_[i * n + i];
  }
}

double SpeedModel::Mean(const Point& point) const {
  double mean = 0;
  for (size_t i = 0; i < samples_.size(); ++i) mean += weights_[i] * Likeness(samples_[i].point, point);
  return middle_ + spread_ * mean;
}

SpeedModel::Guess SpeedModel::Predict(const Point& point) const {
  const size_t n = samples_.size();
  std::vector<double> known(n);
  double mean = 0, left = Likeness(point, point);
  for (size_t i = 0; i < n; ++i) {
    double value = Likeness(samples_[i].point, point);
    mean += weights_[i] * value;
    const double* row = &factor_[i * n];
    for (size_t k = 0; k < i; ++k) value -= row[k] * known[k];
    known[i] = value / row[i];
    left -= known[i] * known[i];
  }
  return {.mean = middle_ + spread_ * mean, .sd = spread_ * std::sqrt(std::max(left, 0.0))};
}

double SpeedModel::ExpectedImprovement(const Point& point, double best) const {
  const Guess guess = Predict(point);
  if (guess.sd <= 0) return std::max(0.0, guess.mean - best);
  const double z = (guess.mean - best) / guess.sd;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return (guess.mean - best) * std::erfc(-z / std::numbers::sqrt2) / 2 + guess.sd * density;
}

}  // namespace pawl
