#pragma once

#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/goal_sizes.h"
#include "profiles/keep_rule.h"

namespace pawl {

// A trial's pairs by the process that measured them, the first one first; each process has those of all sizes.
std::vector<std::vector<v1::PairSample>> PairsByProcess(const v1::TrialResult& result);
// A trial's pairs at a size by the process that measured them, the first one first. Those that name no size are of the
// trial's own.
std::vector<std::vector<v1::PairSample>> PairsByProcess(const v1::TrialResult& result, const std::string& size,
                                                        const std::string& trial_size);
// The same at each of the goal's sizes, for the keep rule.
std::vector<SizePairs> SizePairsOf(const v1::TrialResult& result, const std::vector<SizeWeight>& sizes,
                                   const std::string& trial_size);

// How much the processes of a campaign's comparisons differ, pooled with what is known of its GPU (method of moments).
class NoisePool {
 public:
  // A comparison at several sizes counts by the variance of its weighted mean, so that what processes have in common at
  // all sizes is in it.
  void Add(const v1::TrialResult& result, const std::vector<SizeWeight>& sizes, const std::string& trial_size);

  // `iterations` are those that were judged. Times of `parent` as a parent do not count: it would judge its own seat by
  // noise that it made itself.
  v1::ProcessNoise Noise(const v1::ProcessNoise& prior, const std::vector<v1::Iteration>& iterations, int parent) const;

 private:
  // One comparison of several processes.
  struct Between {
    double variance = 0;  // of the processes' means
    double by_pairs = 0;  // what the variance of their pairs explains of it
    double degrees = 0;
  };
  std::vector<Between> comparisons_;
};

}  // namespace pawl
