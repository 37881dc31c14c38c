#include "report/axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace pawl {
namespace {

constexpr double kNarrow = 3;  // a log axis that spans less has ticks like a linear one

}  // namespace

Axis::Axis(Scale scale, double low, double high, double from, double to)
    : scale_(scale), low_(std::min(low, high)), high_(std::max(low, high)), from_(from), to_(to) {
  if (!std::isfinite(low_) || !std::isfinite(high_)) low_ = 1, high_ = 2;
  if (scale_ == Scale::kLog) {
    low_ = std::max(low_, 1e-12);
    if (high_ < low_ * 1.02) high_ = low_ * 1.1, low_ /= 1.1;
  } else if (high_ - low_ < 1e-9) {
    high_ = low_ + 1;
  }
}

double Axis::At(double value) const {
  double share = (value - low_) / (high_ - low_);
  if (scale_ == Scale::kLog) share = std::log(std::max(value, 1e-300) / low_) / std::log(high_ / low_);
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

std::vector<double> Axis::LinearTicks(int most) const {
  const double rough = (high_ - low_) / std::max(most, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * power >= rough) {
      step = round * power;
      break;
    }
  }
  std::vector<double> ticks;
  for (double at = std::ceil(low_ / step - 1e-9); at * step <= high_ + 1e-9 * step; ++at) ticks.push_back(at * step);
  return ticks;
}

std::vector<double> Axis::Ticks(int most) const {
  if (scale_ == Scale::kLinear || high_ / low_ < kNarrow) return LinearTicks(most);
  const int first = static_cast<int>(std::floor(std::log10(low_))),
            last = static_cast<int>(std::ceil(std::log10(high_)));
  const auto within = [&](const std::vector<double>& rounds, int every) {
    std::vector<double> ticks;
    for (int power = first; power <= last; power += every) {
      for (const double round : rounds) {
        const double tick = round * std::pow(10, power);
        if (tick >= low_ * (1 - 1e-9) && tick <= high_ * (1 + 1e-9)) ticks.push_back(tick);
      }
    }
    return ticks;
  };
  for (const std::vector<double>& rounds : {std::vector<double>{1, 2, 3, 5, 7}, {1, 2, 5}, {1, 3}}) {
    std::vector<double> ticks = within(rounds, 1);
    if (static_cast<int>(ticks.size()) <= most) return ticks;
  }
  int every = 1;
  while ((last - first) / every > most) ++every;
  return within({1}, every);
}

std::string TickText(double value) {
  const double size = std::abs(value);
  if (size >= 1e9) return absl::StrFormat("%gG", value / 1e9);
  if (size >= 1e6) return absl::StrFormat("%gM", value / 1e6);
  if (size >= 1e4) return absl::StrFormat("%gk", value / 1e3);
  return absl::StrFormat("%g", std::round(value * 1e9) / 1e9 + 0.0);  // no -0
}

}  // namespace pawl
