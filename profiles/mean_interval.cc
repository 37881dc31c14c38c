#include "profiles/mean_interval.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

namespace pawl {

v1::Comparison MeanInterval(std::span<const double> log_ratios, double confidence) {
  v1::Comparison interval;
  const auto n = static_cast<int>(log_ratios.size());
  if (!std::all_of(log_ratios.begin(), log_ratios.end(), [](double r) { return std::isfinite(r); })) {
    interval.set_result(v1::UNCLEAR);
    return interval;
  }
  interval.set_pairs(n);
  double sum = 0;
  for (const double ratio : log_ratios) sum += ratio;
  const double mean = n > 0 ? sum / n : 0;
  interval.set_mean_log_ratio(mean);
  interval.set_lower(mean);
  interval.set_upper(mean);
  if (n < 2) {
    interval.set_result(v1::UNCLEAR);
    return interval;
  }
  double squares = 0;
  for (const double ratio : log_ratios) squares += (ratio - mean) * (ratio - mean);
  const double reach =
      boost::math::quantile(boost::math::students_t(n - 1), (1 + confidence) / 2) * std::sqrt(squares / (n - 1) / n);
  interval.set_lower(mean - reach);
  interval.set_upper(mean + reach);
  return interval;
}

}  // namespace pawl
