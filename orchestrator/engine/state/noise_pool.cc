#include "orchestrator/engine/state/noise_pool.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "profiles/seat_rule.h"

namespace pawl {
namespace {

// One comparison in which something went wrong may not blur all that follow: 999 of 1000 squares of a standard normal
// are smaller.
constexpr double kLargestSquare = 10.8;
// A few processes that happen to agree do not prove that there is no noise: this share of the prior's variance stays.
constexpr double kLeastShare = 0.25;

}  // namespace

std::vector<std::vector<v1::PairSample>> PairsByProcess(const v1::TrialResult& result) {
  std::vector<std::vector<v1::PairSample>> processes;
  if (!result.pairs().empty()) processes.emplace_back(result.pairs().begin(), result.pairs().end());
  std::map<int, std::vector<v1::PairSample>> confirming;
  for (const v1::PairSample& pair : result.confirming_pairs()) confirming[pair.process()].push_back(pair);
  for (auto& [process, pairs] : confirming) processes.push_back(std::move(pairs));
  return processes;
}

std::vector<std::vector<v1::PairSample>> PairsByProcess(const v1::TrialResult& result, const std::string& size,
                                                        const std::string& trial_size) {
  std::vector<std::vector<v1::PairSample>> processes = PairsByProcess(result);
  for (std::vector<v1::PairSample>& process : processes) {
    std::erase_if(process,
                  [&](const v1::PairSample& pair) { return (pair.size().empty() ? trial_size : pair.size()) != size; });
  }
  std::erase_if(processes, [](const std::vector<v1::PairSample>& process) { return process.empty(); });
  return processes;
}

std::vector<SizePairs> SizePairsOf(const v1::TrialResult& result, const std::vector<SizeWeight>& sizes,
                                   const std::string& trial_size) {
  std::vector<SizePairs> all;
  for (const SizeWeight& size : sizes) {
    SizePairs& pairs = all.emplace_back(SizePairs{size.size, size.weight, {}});
    for (const std::vector<v1::PairSample>& process : PairsByProcess(result, size.size, trial_size)) {
      PairBatch& batch = pairs.processes.emplace_back();
      for (const v1::PairSample& pair : process) batch.log_ratios.push_back(pair.log_ratio());
    }
  }
  // Which of the processes discarded a pair does not matter.
  const auto timed =
      std::find_if(all.begin(), all.end(), [](const SizePairs& size) { return !size.processes.empty(); });
  if (timed != all.end()) timed->processes[0].discarded = result.discarded() + result.confirming_discarded();
  return all;
}

void NoisePool::Add(const v1::TrialResult& result, const std::vector<SizeWeight>& sizes,
                    const std::string& trial_size) {
  const std::vector<SizePairs> all = SizePairsOf(result, sizes, trial_size);
  if (all.empty()) return;
  const size_t count = all[0].processes.size();
  const bool whole =
      std::all_of(all.begin(), all.end(), [&](const SizePairs& size) { return size.processes.size() == count; });
  if (count < 2 || !whole) return;
  const double k = static_cast<double>(count);
  std::vector<double> means(count);
  Between between;
  between.degrees = k - 1;
  double squared_weights = 0;
  for (const SizePairs& size : all) {
    const double square = size.weight * size.weight;
    squared_weights += square;
    for (size_t i = 0; i < count; ++i) {
      const std::vector<double>& log_ratios = size.processes[i].log_ratios;
      const double n = static_cast<double>(log_ratios.size());
      if (n < 2) return;
      double mean = 0, squares = 0;
      for (const double r : log_ratios) mean += r / n;
      for (const double r : log_ratios) squares += (r - mean) * (r - mean);
      means[i] += size.weight * mean;
      between.by_pairs += square * squares / (n - 1) / n / k;
    }
  }
  double mean_of_all = 0;
  for (const double mean : means) mean_of_all += mean / k;
  for (const double mean : means) between.variance += (mean - mean_of_all) * (mean - mean_of_all) / (k - 1);
  // As of one size.
  between.variance /= squared_weights;
  between.by_pairs /= squared_weights;
  comparisons_.push_back(between);
}

v1::ProcessNoise NoisePool::Noise(const v1::ProcessNoise& prior, const std::vector<v1::Iteration>& iterations,
                                  int parent) const {
  v1::ProcessNoise noise = prior;
  double sum = prior.variance() * prior.degrees(), degrees = prior.degrees();
  for (const Between& between : comparisons_) {
    const double expected = prior.variance() + between.by_pairs;
    // A comparison whose pairs spread widely says little about its processes.
    const double share = prior.variance() / expected;
    const double weight = between.degrees * share * share;
    sum += weight * (std::min(between.variance, kLargestSquare * expected) - between.by_pairs);
    degrees += weight;
  }
  noise.set_variance(std::max(sum / degrees, kLeastShare * prior.variance()));
  noise.set_degrees(degrees);

  std::map<std::tuple<int, TimedWay, int>, std::vector<v1::SeatTime>> as_parents;  // timed in one way, in a leg
  for (const v1::Iteration& iteration : iterations) {
    const bool counts = iteration.has_parent() && iteration.parent() != parent && iteration.as_parent().processes() > 0;
    const v1::SeatTime& time = iteration.as_parent();
    if (counts) {
      as_parents[{iteration.parent(), WayOf(time), iteration.leg()}].push_back(time);
    }
  }
  sum = prior.anchor_variance() * prior.anchor_degrees();
  degrees = prior.anchor_degrees();
  for (const auto& [way, times] : as_parents) {
    double processes = 0, mean = 0;
    for (const v1::SeatTime& time : times) {
      processes += time.processes();
      mean += time.processes() * time.log_time();
    }
    mean /= processes;
    for (const v1::SeatTime& time : times) {
      const double off = time.log_time() - mean;
      sum += std::min(time.processes() * off * off, kLargestSquare * prior.anchor_variance());
    }
    degrees += static_cast<double>(times.size()) - 1;
  }
  noise.set_anchor_variance(std::max(sum / degrees, kLeastShare * prior.anchor_variance()));
  noise.set_anchor_degrees(degrees);
  return noise;
}

}  // namespace pawl
