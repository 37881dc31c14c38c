#include "profiles/seat_rule.h"

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "profiles/keep_rule.h"

namespace pawl {
namespace {

// Without arithmetic in long double, which some machines only emulate.
using SeatPolicy = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

// Kernels of different length differ in the part that a launch has of their time, and that varies between processes:
// this much of the logarithm of their ratio (tests/profiles/series).
constexpr double kPerDistance = 0.006;

double Above(double degrees, double share) {
  const boost::math::students_t_distribution<double, SeatPolicy> distribution(degrees);
  return boost::math::quantile(boost::math::complement(distribution, share));
}

}  // namespace

v1::SeatTime SeatTimeOf(const std::vector<std::vector<double>>& processes) {
  v1::SeatTime time;
  const double k = static_cast<double>(processes.size());
  double log_time = 0, variance = 0;
  for (const std::vector<double>& process : processes) {
    const double n = static_cast<double>(process.size());
    double mean = 0, squares = 0;
    for (const double value : process) mean += value / n;
    for (const double value : process) squares += (value - mean) * (value - mean);
    log_time += mean / k;
    variance += squares / (n - 1) / n / (k * k);
  }
  time.set_log_time(log_time);
  time.set_processes(static_cast<int>(processes.size()));
  time.set_pair_variance(variance);
  return time;
}

bool TimedAlike(const v1::SeatTime& a, const v1::SeatTime& b) {
  return a.single() == b.single() && (a.calls() == b.calls() || a.calls() == 0 || b.calls() == 0);
}

bool ComparableSeats(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent) {
  return as_candidate.processes() > 0 && as_parent.processes() > 0 && as_candidate.witness() == as_parent.witness() &&
         TimedAlike(as_candidate, as_parent);
}

SeatTest TestSeat(const v1::SeatTime& as_candidate, const v1::SeatTime& as_parent, const v1::ProcessNoise& noise,
                  double share) {
  const v1::ProcessNoise known = noise.variance() > 0 && noise.degrees() > 0 ? noise : UnknownNoise();
  const double distance = kPerDistance * as_candidate.log_time();
  const double by_processes =
      (known.variance() + distance * distance) * (1.0 / as_candidate.processes() + 1.0 / as_parent.processes());
  const double by_pairs = as_candidate.pair_variance() + as_parent.pair_variance();
  const double pair_degrees = (KeepRule().extended_pairs - 1) * (as_candidate.processes() + as_parent.processes());
  const double variance = by_processes + by_pairs;
  const double degrees =
      variance * variance /
      (by_processes * by_processes / known.degrees() + by_pairs * by_pairs / pair_degrees);  // Satterthwaite's
  SeatTest test;
  test.slower = as_parent.log_time() - as_candidate.log_time();
  test.limit = Above(degrees, share) * std::sqrt(variance);
  test.excluded = test.slower + Above(degrees, 0.01) * std::sqrt(variance) < std::log1p(kSeatBias);
  return test;
}

}  // namespace pawl
