#pragma once

#include <span>
#include <string>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// When a candidate counts as faster than its parent; orchestrator/engine/verdict/verdict.cc then keeps it unless a gate
// forbids that. Thresholds are data: these are the defaults.
struct KeepRule {
  double min_gain = 0.01;
  double confidence = 0.99;     // of the interval for a further process
  int first_pairs = 12;         // of the first process
  int extended_pairs = 36;      // where these leave it unclear, and of every further process
  int min_processes = 2;        // that a FASTER needs
  int max_processes = 4;        // where they disagree or the interval still contains the threshold
  int max_discarded = 10;       // pairs of all processes; with so many the GPU was too unsteady to judge
  double disagreement = 0.999;  // processes differ by more than this share of such differences does by noise alone
  // Of a goal of one size: so few pairs of a first process, or more, are enough if they show that the candidate is
  // slower. 0: they are not.
  int sure_pairs = 0;
  // Of a goal over several sizes: a size that was not timed is taken to be at most so many times as fast as the parent.
  double untimed_speedup = 1.5;
};

// KeepRule::sure_pairs of a campaign's iterations that may be kept, in its first leg.
inline constexpr int kSurePairs = 2;

// The defaults with the campaign's own settings.
KeepRule KeepRuleOf(const v1::KeepSettings& settings);

// The same for a step of an expedition: one process says whether it is faster than its parent. What is kept at the end
// of an expedition is compared with the best variant by KeepRuleOf.
KeepRule StepRuleOf(const v1::KeepSettings& settings);

// The noise that is assumed where nothing is known about the GPU: larger than any that was measured.
v1::ProcessNoise UnknownNoise();

// The pairs of one process; a log ratio is log(parent time / candidate time).
struct PairBatch {
  std::vector<double> log_ratios;
  int discarded = 0;
};

// The pairs of one comparison at one of the sizes of a goal.
struct SizePairs {
  std::string size;
  double weight = 1;
  std::vector<PairBatch> processes;  // none: it was not timed
};

// Judges the pairs of one comparison, measured in one process or several.
//   FASTER   the lower bound exceeds log(1 + min_gain), in min_processes or more that agree
//   SLOWER   the upper bound is below -log(1 + min_gain)
//   SAME     both bounds lie between the two
//   UNCLEAR  otherwise, with fewer than first_pairs in a process (unless sure_pairs or more show that it is SLOWER), or
//            with max_discarded pairs discarded at each size
// The mean is that of the processes' means. The bounds are for the mean of one more process that measures in the same
// way. A process's mean varies by `noise` and by the variance of its pairs; the variance between these processes is
// pooled with the noise, which has more degrees of freedom than a few processes. Where max_processes still disagree,
// the noise is not theirs, and only their own variance counts. An empty `noise` is UnknownNoise. To the variance of
// fewer than first_pairs an assumed one is added, which is larger than most, and the further process measures
// first_pairs.
v1::Comparison Compare(std::span<const PairBatch> processes, const v1::ProcessNoise& noise, const KeepRule& rule);

// The same for a goal over several sizes, whose weights have the sum 1: of the weighted mean of the log ratios.
// Variances add with squared weights, and what differs between processes counts as independent at each size; `noise` is
// that of one size. Processes that did not time every size do not count. Where a size was not timed at all, the bounds
// allow for rule.untimed_speedup there and nothing is FASTER. One size of weight 1 gives what Compare gives.
v1::Comparison CompareSizes(std::span<const SizePairs> sizes, const v1::ProcessNoise& noise, const KeepRule& rule);

// What so few pairs must lie below to be enough: as many that are equal would be judged SLOWER.
double SureBelow(const v1::ProcessNoise& noise, const KeepRule& rule);

// Whether the first process may end with these pairs: there are rule.sure_pairs or more, all below SureBelow. The mean
// of pairs that end because they are low is too low, by less than their standard deviation: the interval allows for
// more.
bool SurelySlower(std::span<const double> log_ratios, const v1::ProcessNoise& noise, const KeepRule& rule);

// The sizes, by their place, that the first process should measure up to rule.extended_pairs: the comparison is
// unclear, and the variance of their pairs is a part of that.
std::vector<size_t> WantMorePairs(std::span<const SizePairs> sizes, const v1::ProcessNoise& noise,
                                  const KeepRule& rule);

// Whether a size is slower, beyond doubt, than this share of the parent's speed; `worst` of 0: never.
bool SurelyBelow(const SizePairs& size, double worst, const v1::ProcessNoise& noise, const KeepRule& rule);

// Whether another process should measure: the mean is above the threshold, and there are too few processes or they
// leave it unclear.
bool WantsProcess(const v1::Comparison& comparison, const KeepRule& rule, size_t sizes = 1);

// The mean of log ratios with the bounds of Student's t that enclose it at the confidence, two-sided. `pairs` is how
// many there are. UNCLEAR, with equal bounds, where there are fewer than two or one is not finite. No other result is
// set: what this is used for decides nothing.
v1::Comparison MeanInterval(std::span<const double> log_ratios, double confidence = 0.99);

}  // namespace pawl
