// Evidence in, findings out, by the rules of decision_tree.toml.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/finding.pb.h"
#include "profiles/metrics.h"
#include "profiles/rule.h"

namespace pawl {

// The launch that rules read: the longest one, or the first where not all durations are known. Null: there is none.
const v1::LaunchEvidence* LongestLaunch(const v1::Evidence& evidence);

// A rule whose answer hangs on metrics that the evidence lacks.
struct RuleGap {
  std::string rule;
  std::vector<std::string> missing;  // metrics, or "ncu's advice"
  bool found = false;                // it fired, and what is missing could only speak against it; else it was silent
};

// Immutable and thread-safe.
class DecisionTree {
 public:
  // Every mistake of the text, as "file:line: message", one a line. `metrics` are the names that rules may use.
  static absl::StatusOr<DecisionTree> Parse(std::string_view toml, const std::string& file, const Metrics& metrics);
  // Of the decision_tree.toml that was built in.
  static const DecisionTree& Default();

  const std::vector<Rule>& rules() const { return rules_; }

  // Findings of the longest launch (of the first, where not all durations are known), in phase order, then by
  // severity, then in the tree's order. Metrics that the launch lacks are derived where that is possible; one that is
  // not finite counts as missing. Thresholds are those of the GPU's file where it has its own.
  std::vector<v1::Finding> Diagnose(const v1::Evidence& evidence, const v1::GpuInfo& gpu) const;

  // Of the same launch, in the tree's order: what Diagnose could not tell for lack of evidence.
  std::vector<RuleGap> Gaps(const v1::Evidence& evidence, const v1::GpuInfo& gpu) const;

 private:
  explicit DecisionTree(const Metrics& metrics) : metrics_(metrics) {}

  Metrics metrics_;  // formulas are shared between copies
  std::vector<Rule> rules_;
};

}  // namespace pawl
