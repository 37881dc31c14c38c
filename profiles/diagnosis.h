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

// Immutable and thread-safe.
class DecisionTree {
 public:
  // Every mistake of the text, as "file:line: message", one a line. `metrics` are the names that rules may use.
  static absl::StatusOr<DecisionTree> Parse(std::string_view toml, const std::string& file, const Metrics& metrics);
  // Of the decision_tree.toml that was built in.
  static const DecisionTree& Default();

  const std::vector<Rule>& rules() const { return rules_; }

  // Findings of the longest launch (of the first, where not all durations are known), in phase order, then by
  // severity, then in the tree's order. Metrics are read from the launch as Metrics::Derive made them. Thresholds are
  // those of the GPU's file where it has its own.
  std::vector<v1::Finding> Diagnose(const v1::Evidence& evidence, const v1::GpuInfo& gpu) const;

 private:
  std::vector<Rule> rules_;
};

}  // namespace pawl
