#pragma once

#include <span>
#include <vector>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// When a candidate counts as faster than its parent. Thresholds are data: these are the defaults.
struct KeepRule {
  double min_gain = 0.01;
  double confidence = 0.99;     // of the interval for a further process
  int first_pairs = 12;         // of the first process
  int extended_pairs = 36;      // where these leave it unclear, and of every further process
  int min_processes = 2;        // that a FASTER needs
  int max_processes = 4;        // where they disagree or the interval still contains the threshold
  int max_discarded = 10;       // pairs of all processes; with so many the GPU was too unsteady to judge
  double disagreement = 0.999;  // processes differ by more than this share of such differences does by noise alone
};

// The defaults with the campaign's own settings.
KeepRule KeepRuleOf(const v1::KeepSettings& settings);

// The noise that is assumed where nothing is known about the GPU: larger than any that was measured.
v1::ProcessNoise UnknownNoise();

// The pairs of one process; a log ratio is log(parent time / candidate time).
struct PairBatch {
  std::vector<double> log_ratios;
  int discarded = 0;
};

// Judges the pairs of one comparison, measured in one process or several.
//   FASTER   the lower bound exceeds log(1 + min_gain), in min_processes or more that agree
//   SLOWER   the upper bound is below -log(1 + min_gain)
//   SAME     both bounds lie between the two
//   UNCLEAR  otherwise, with fewer than first_pairs in a process, or with max_discarded pairs discarded
// The mean is that of the processes' means. The bounds are for the mean of one more process that measures in the same
// way. A process's mean varies by `noise` and by the spread of its pairs; the variance between these processes is
// pooled with the noise, which has more degrees of freedom than a few processes. Where max_processes still disagree,
// the noise is not theirs, and only their own variance counts. An empty `noise` is UnknownNoise.
v1::Comparison Compare(std::span<const PairBatch> processes, const v1::ProcessNoise& noise, const KeepRule& rule);

// Whether the first process should measure up to rule.extended_pairs: it is unclear, and the spread of its pairs is a
// part of that.
bool WantsMorePairs(const PairBatch& first, const v1::ProcessNoise& noise, const KeepRule& rule);

// Whether another process should measure: the mean is above the threshold, and there are too few processes or they
// leave it unclear.
bool WantsProcess(const v1::Comparison& comparison, const KeepRule& rule);

}  // namespace pawl
