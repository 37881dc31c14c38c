#include "orchestrator/engine/search/model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace pawl {
namespace {

constexpr int kFarthest = 4;  // places apart: beyond, the whole is shared no less

// The newest half, and of those before the best.
std::vector<SpeedModel::Sample> Bounded(std::vector<SpeedModel::Sample> samples, size_t limit) {
  if (samples.size() <= limit) return samples;
  const auto newest = samples.end() - static_cast<ptrdiff_t>(limit / 2);
  const size_t older = limit - limit / 2;
  std::stable_sort(samples.begin(), newest, [](const auto& a, const auto& b) { return a.log_speed > b.log_speed; });
  samples.erase(samples.begin() + static_cast<ptrdiff_t>(older), newest);
  return samples;
}

// Four sums at once: one alone waits for each of its additions.
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
  FillTables(scales);
  const double variables = static_cast<double>(tables_.size());
  const double sum = settings_.singles + settings_.pairs + settings_.by_places + settings_.by_scales;
  single_weight_ = settings_.singles / sum / variables;
  pair_weight_ = variables > 1 ? settings_.pairs / sum / (variables * (variables - 1)) : 0;
  places_weight_ = settings_.by_places / sum;
  scales_weight_ = settings_.by_scales / sum;
  Solve();
}

void SpeedModel::FillTables(const Scales& scales) {
  const size_t variables = samples_[0].point.size();
  for (size_t i = 0; i < variables; ++i) {
    // A value that is not in its list has the place past its end.
    const size_t side = scales[i].size() + 1;
    std::vector<Like>& table = tables_.emplace_back(side * side);
    sides_.push_back(side);
    for (size_t a = 0; a < side; ++a) {
      for (size_t b = 0; b < a; ++b) {
        const int apart = static_cast<int>(a - b);
        Like& like = table[a * side + b];
        like.single = std::pow(settings_.nearness, apart);
        like.by_places = std::pow(settings_.alikeness, (1 + std::min(apart, kFarthest)) / 2.0);
        const double step = a < scales[i].size() ? std::abs(scales[i][a] - scales[i][b]) : 1;
        like.by_scales = std::exp(-std::max(settings_.least_step, step) / settings_.reach);
        like.undo_places = 1 / like.by_places;
        like.undo_scales = 1 / like.by_scales;
        table[b * side + a] = like;
      }
    }
  }
}

double SpeedModel::Likeness(double singles, double squares, double by_places, double by_scales) const {
  // Over all pairs of variables, the product of both.
  return single_weight_ * singles + pair_weight_ * (singles * singles - squares) + places_weight_ * by_places +
         scales_weight_ * by_scales;
}

void SpeedModel::Solve() {
  const size_t n = samples_.size();
  double sum = 0, squares = 0;
  for (const Sample& sample : samples_) sum += sample.log_speed;
  middle_ = sum / static_cast<double>(n);
  for (const Sample& sample : samples_) squares += (sample.log_speed - middle_) * (sample.log_speed - middle_);
  spread_ = std::max(settings_.min_spread, std::sqrt(squares / static_cast<double>(n)));

  factor_.assign(n * n, 0);
  weights_.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Around around(*this, samples_[i].point);
    const uint16_t own = samples_[i].point[0];
    double* row = &factor_[i * n];
    for (size_t j = 0; j <= i; ++j) {
      double left = around.LikenessTo(j, 0, own);
      if (i == j) left += settings_.noise * settings_.noise;
      left -= Dot(row, &factor_[j * n], j);
      row[j] = i == j ? std::sqrt(std::max(left, 1e-12)) : left / factor_[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const double left = (samples_[i].log_speed - middle_) / spread_;
    weights_[i] = (left - Dot(&factor_[i * n], weights_.data(), i)) / factor_[i * n + i];
  }
  for (size_t i = n; i-- > 0;) {
    double left = weights_[i];
    for (size_t k = i + 1; k < n; ++k) left -= factor_[k * n + i] * weights_[k];
    weights_[i] = left / factor_[i * n + i];
  }
}

SpeedModel::Around::Around(const SpeedModel& model, Point centre)
    : model_(model), centre_(std::move(centre)), shared_(model.samples_.size()) {
  for (size_t s = 0; s < shared_.size(); ++s) {
    const Point& sample = model_.samples_[s].point;
    Shared& shared = shared_[s];
    for (size_t i = 0; i < centre_.size(); ++i) {
      const Like& like = model_.Of(i, centre_[i], sample[i]);
      shared.singles += like.single;
      shared.squares += like.single * like.single;
      shared.by_places *= like.by_places;
      shared.by_scales *= like.by_scales;
    }
  }
}

double SpeedModel::Around::LikenessTo(size_t sample, size_t variable, uint16_t place) const {
  const Shared& shared = shared_[sample];
  const uint16_t there = model_.samples_[sample].point[variable];
  const Like& without = model_.Of(variable, centre_[variable], there);
  const Like& with = model_.Of(variable, place, there);
  return model_.Likeness(shared.singles - without.single + with.single,
                         shared.squares - without.single * without.single + with.single * with.single,
                         shared.by_places * without.undo_places * with.by_places,
                         shared.by_scales * without.undo_scales * with.by_scales);
}

double SpeedModel::Around::Mean(size_t variable, uint16_t place) const {
  double mean = 0;
  for (size_t i = 0; i < shared_.size(); ++i) mean += model_.weights_[i] * LikenessTo(i, variable, place);
  return model_.middle_ + model_.spread_ * mean;
}

SpeedModel::Guess SpeedModel::Around::Predict(size_t variable, uint16_t place) const {
  const size_t n = shared_.size();
  std::vector<double> known(n);
  const double variables = static_cast<double>(centre_.size());
  double mean = 0, left = n == 0 ? 1 : model_.Likeness(variables, variables, 1, 1);
  for (size_t i = 0; i < n; ++i) {
    const double likeness = LikenessTo(i, variable, place);
    mean += model_.weights_[i] * likeness;
    const double* row = &model_.factor_[i * n];
    known[i] = (likeness - Dot(row, known.data(), i)) / row[i];
    left -= known[i] * known[i];
  }
  return {.mean = model_.middle_ + model_.spread_ * mean, .sd = model_.spread_ * std::sqrt(std::max(left, 0.0))};
}

double ExpectedImprovement(const SpeedModel::Guess& guess, double best) {
  if (guess.sd <= 0) return std::max(0.0, guess.mean - best);
  const double z = (guess.mean - best) / guess.sd;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return std::max(0.0, (guess.mean - best) * ChanceAbove(guess, best) + guess.sd * density);
}

double ChanceAbove(const SpeedModel::Guess& guess, double level) {
  if (guess.sd <= 0) return guess.mean > level ? 1 : 0;
  return std::erfc((level - guess.mean) / guess.sd / std::numbers::sqrt2) / 2;
}

}  // namespace pawl
