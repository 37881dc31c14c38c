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
  int max_discarded = 10;          // pairs; with so many the GPU was too unsteady to judge
  double max_parent_drift = 0.10;  // between the parent's stored time and the one measured beside a candidate
};

// The defaults with the campaign's own settings.
KeepRule KeepRuleOf(const v1::KeepSettings& settings);

// Judges ABBA pairs of one process; log_ratios are log(parent time / candidate time).
//   FASTER   the lower bound of the mean exceeds log(1 + min_gain)
//   SLOWER   the upper bound is below -log(1 + min_gain)
//   SAME     both bounds lie between the two
//   UNCLEAR  otherwise, with fewer than first_pairs, or with max_discarded pairs discarded
// Bounds are Student's t, each one-sided at the rule's confidence.
v1::Comparison Compare(std::span<const double> log_ratios, int discarded, const KeepRule& rule);

// Whether the comparison is worth extending to rule.extended_pairs.
bool WantsMorePairs(const v1::Comparison& comparison, const KeepRule& rule);

// The result after a second process with other seeds measured again. Only FASTER needs confirmation, and both processes
// must agree. The figures are then those of the second process, which have no selection bias.
v1::Comparison Confirm(const v1::Comparison& first, const v1::Comparison& fresh, const KeepRule& rule);

// Why the parent's time next to a candidate is not trusted: it differs from the stored time. A candidate could slow its
// parent down, so a second process decides. Nothing if they agree.
std::optional<std::string> ParentDrift(double stored_us, double measured_us, const KeepRule& rule);

}  // namespace pawl
