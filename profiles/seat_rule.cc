#include "profiles/seat_rule.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <utility>

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

constexpr int kCallsOfASize = 100;  // and more are no number of calls at one size
constexpr int kOneByOne = 99;
constexpr size_t kMostSizesTold = 4;

// SeatTime::calls of times at several sizes: two digits for the calls of each in a graph (at most 20), 99 where they
// were timed one by one. 403 stands for 4 calls at the first size and 3 at the second, so that two times have the same
// number only if each size was timed alike. A time at one size, which is what iterations of goals over several sizes
// had before the seat was timed at all of them, has another number. 0: not known at some size.
int CallsOfSizes(const std::vector<std::vector<v1::PairSample>>& sizes) {
  constexpr int64_t kPrime = 2147483647;  // of more than kMostSizesTold only the remainder may fit
  if (sizes.size() == 1) return sizes[0][0].calls();
  int64_t number = 0;
  for (const std::vector<v1::PairSample>& pairs : sizes) {
    const v1::PairSample& pair = pairs[0];
    if (!pair.single() && pair.calls() == 0) return 0;
    number = (number * kCallsOfASize + (pair.single() ? kOneByOne : pair.calls())) % kPrime;
  }
  return static_cast<int>(std::max<int64_t>(1, number));
}

// SeatTime::data of times at several sizes: their number if it is the same, as those of a process that confirms.
uint32_t DataOfSizes(const std::vector<std::vector<v1::PairSample>>& sizes) {
  constexpr uint32_t kPrime = 16777619;
  uint32_t number = 0;
  bool same = true;
  for (const std::vector<v1::PairSample>& pairs : sizes) {
    number = number * kPrime + pairs[0].data();
    same = same && pairs[0].data() == sizes[0][0].data();
  }
  return same ? sizes[0][0].data() : number;
}

}  // namespace

bool SameWay(const v1::PairSample& a, const v1::PairSample& b) {
  return a.single() == b.single() && a.calls() == b.calls() && a.protocol() == b.protocol() && a.data() == b.data();
}

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

v1::SeatTime SeatTimeOf(std::span<const SizeLogs> sizes) {
  v1::SeatTime all;
  for (const SizeLogs& size : sizes) {
    const v1::SeatTime time = SeatTimeOf(size.processes);
    all.set_log_time(all.log_time() + size.weight * time.log_time());
    all.set_pair_variance(all.pair_variance() + size.weight * size.weight * time.pair_variance());
    all.set_processes(time.processes());
  }
  return all;
}

SeatPairs::SeatPairs(const std::vector<std::vector<v1::PairSample>>& processes, std::vector<SizeWeight> sizes,
                     const std::string& trial_size)
    : sizes_(std::move(sizes)) {
  for (const std::vector<v1::PairSample>& process : processes) {
    std::vector<std::vector<v1::PairSample>> by_size(sizes_.size());
    for (const v1::PairSample& pair : process) {
      const std::string& at = pair.size().empty() ? trial_size : pair.size();
      for (size_t i = 0; i < sizes_.size(); ++i) {
        if (sizes_[i].size == at) by_size[i].push_back(pair);
      }
    }
    const bool whole = std::none_of(by_size.begin(), by_size.end(), [](const auto& pairs) { return pairs.empty(); });
    if (whole && !by_size.empty()) processes_.push_back(std::move(by_size));
  }
  if (processes_.empty()) return;
  std::vector<v1::PairSample> last;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    last.push_back(LikeAll(i));
    std::erase_if(processes_.back()[i], [&](const v1::PairSample& pair) { return !SameWay(pair, last[i]); });
  }
  std::erase_if(processes_, [&](const std::vector<std::vector<v1::PairSample>>& process) {
    for (size_t i = 0; i < process.size(); ++i) {
      const bool alike = std::all_of(process[i].begin(), process[i].end(),
                                     [&](const v1::PairSample& pair) { return SameWay(pair, last[i]); });
      if (!alike) return true;
    }
    return false;
  });
}

bool SeatPairs::Have(PairTime time) const {
  for (const std::vector<std::vector<v1::PairSample>>& process : processes_) {
    for (const std::vector<v1::PairSample>& pairs : process) {
      const bool all =
          std::all_of(pairs.begin(), pairs.end(), [&](const v1::PairSample& pair) { return (pair.*time)() > 0; });
      if (!all) return false;
    }
  }
  return true;
}

v1::SeatTime SeatPairs::Time(PairTime time, PairTime relative_to) const {
  std::vector<SizeLogs> all;
  for (const SizeWeight& size : sizes_) all.push_back({size.weight, {}});
  for (const std::vector<std::vector<v1::PairSample>>& process : processes_) {
    std::vector<std::vector<double>> logs(sizes_.size());
    bool whole = true;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      for (const v1::PairSample& pair : process[i]) {
        const double of = (pair.*time)(), beside = (pair.*relative_to)();
        if (of > 0 && beside > 0) logs[i].push_back(std::log(of / beside));
      }
      whole = whole && logs[i].size() == process[i].size() && logs[i].size() >= 2;
    }
    if (!whole) continue;
    for (size_t i = 0; i < sizes_.size(); ++i) all[i].processes.push_back(std::move(logs[i]));
  }
  if (all.empty() || all[0].processes.empty()) return v1::SeatTime();
  v1::SeatTime seat = SeatTimeOf(all);
  const std::vector<std::vector<v1::PairSample>>& like = processes_.back();
  seat.set_single(std::any_of(like.begin(), like.end(), [](const auto& pairs) { return pairs[0].single(); }));
  seat.set_calls(CallsOfSizes(like));
  seat.set_protocol(like[0][0].protocol());
  seat.set_data(DataOfSizes(like));
  return seat;
}

TimedWay WayOf(const v1::SeatTime& time) { return {time.single(), time.calls(), time.protocol(), time.data()}; }

void SetWay(const v1::SeatTime& from, v1::SeatTime* to) {
  to->set_single(from.single());
  to->set_calls(from.calls());
  to->set_protocol(from.protocol());
  to->set_data(from.data());
}

bool SetCallsOfSizes(const v1::SeatTime& time, std::span<v1::PairSample> ways) {
  if (time.calls() == 0 || ways.size() > kMostSizesTold) return false;
  if (ways.size() == 1) {
    ways[0].set_single(time.single());
    ways[0].set_calls(time.calls());
    return true;
  }
  int rest = time.calls();
  for (size_t i = ways.size(); i-- > 0; rest /= kCallsOfASize) {
    const int calls = rest % kCallsOfASize;
    if (calls == 0 || (calls > kMostCalls && calls != kOneByOne)) return false;
    ways[i].set_single(calls == kOneByOne);
    ways[i].set_calls(calls == kOneByOne ? 1 : calls);
  }
  return rest == 0;
}

bool TimedAlike(const v1::SeatTime& a, const v1::SeatTime& b) {
  // An unknown number of calls is that of one size.
  const bool unknown = std::min(a.calls(), b.calls()) == 0 && std::max(a.calls(), b.calls()) < kCallsOfASize;
  return a.protocol() == b.protocol() && a.data() == b.data() && a.single() == b.single() &&
         (a.calls() == b.calls() || unknown);
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
  // At least so many pairs are of one process.
  const double pair_degrees = (KeepRule().first_pairs - 1) * (as_candidate.processes() + as_parent.processes());
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
