#include "orchestrator/engine/state/noise_pool.h"

#include <algorithm>
#include <cmath>
#include <map>

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

std::vector<PairBatch> BatchesOf(const v1::TrialResult& result) {
  std::vector<PairBatch> batches;
  for (const std::vector<v1::PairSample>& process : PairsByProcess(result)) {
    PairBatch& batch = batches.emplace_back();
    for (const v1::PairSample& pair : process) batch.log_ratios.push_back(pair.log_ratio());
  }
  // Which of the processes discarded a pair does not matter.
  if (!batches.empty()) batches[0].discarded = result.discarded() + result.confirming_discarded();
  return batches;
}

void NoisePool::Add(const v1::TrialResult& result) {
  const std::vector<PairBatch> processes = BatchesOf(result);
  if (processes.size() < 2) return;
  const double k = static_cast<double>(processes.size());
  std::vector<double> means;
  Between between;
  between.degrees = k - 1;
  double mean_of_all = 0;
  for (const PairBatch& process : processes) {
    const double n = static_cast<double>(process.log_ratios.size());
    if (n < 2) return;
    double mean = 0, squares = 0;
    for (const double r : process.log_ratios) mean += r / n;
    for (const double r : process.log_ratios) squares += (r - mean) * (r - mean);
    means.push_back(mean);
    mean_of_all += mean / k;
    between.by_pairs += squares / (n - 1) / n / k;
  }
  for (const double mean : means) between.variance += (mean - mean_of_all) * (mean - mean_of_all) / (k - 1);
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

  std::map<int, std::vector<v1::SeatTime>> as_parents;
  for (const v1::Iteration& iteration : iterations) {
    const bool counts = iteration.has_parent() && iteration.parent() != parent && iteration.as_parent().processes() > 0;
    if (counts) as_parents[iteration.parent()].push_back(iteration.as_parent());
  }
  sum = prior.anchor_variance() * prior.anchor_degrees();
  degrees = prior.anchor_degrees();
  for (const auto& [number, times] : as_parents) {
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
