#pragma once

#include <optional>
#include <span>
#include <string>

#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// When a candidate counts as faster than its parent. Thresholds are data: these are the defaults.
struct KeepRule {
  double min_gain = 0.01;
  double confidence = 0.99;  // of each bound by itself: lower and upper together enclose the mean with 98 %
  int first_pairs = 7;
  int extended_pairs = 15;
  int max_discarded = 10;          // with so many pairs thrown away the GPU was too unsteady to judge
  double max_parent_drift = 0.10;  // between the parent's stored time and the one measured beside a candidate
};

// The defaults with what a campaign asked for instead.
KeepRule KeepRuleOf(const v1::KeepSettings& settings);

// Judges ABBA pairs of one process; log_ratios are log(parent time / candidate time).
//   FASTER   the lower bound of the mean exceeds log(1 + min_gain)
//   SLOWER   the upper bound is below -log(1 + min_gain)
//   SAME     both bounds lie between the two
//   UNCLEAR  otherwise, with fewer than first_pairs, or with max_discarded thrown away
// Bounds are Student's t, each one-sided at the rule's confidence.
v1::Comparison Compare(std::span<const double> log_ratios, int discarded, const KeepRule& rule);

// Whether the comparison is worth extending to rule.extended_pairs.
bool WantsMorePairs(const v1::Comparison& comparison, const KeepRule& rule);

// What stands after a fresh process with fresh seeds measured again. Only a FASTER needs that, and it stands only if
// both say so; the figures are then those of the fresh process, which was not picked for being good.
v1::Comparison Confirm(const v1::Comparison& first, const v1::Comparison& fresh, const KeepRule& rule);

// Why the parent's time beside a candidate can't be believed: it is off what is stored for it. A candidate could slow
// its parent, so a fresh process must then decide. Nothing when it agrees.
std::optional<std::string> ParentDrift(double stored_us, double measured_us, const KeepRule& rule);

}  // namespace pawl
