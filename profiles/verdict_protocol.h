#pragma once

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "profiles/keep_rule.h"

namespace pawl {

struct PairBatch {
  std::vector<double> log_ratios;
  int discarded = 0;
};

// One process that times candidate against parent: each call measures so many more pairs.
using PairSource = std::function<absl::StatusOr<PairBatch>(int pairs)>;
// Starts such a process, with fresh seeds.
using PairSourceStarter = std::function<absl::StatusOr<PairSource>()>;

// The keep rule from the first pair to the result: first_pairs in one process, extended once where that is unclear, and
// a FASTER confirmed the same way by a second process. Every comparison Pawl decides by goes through here.
absl::StatusOr<v1::Comparison> CompareByProtocol(const PairSourceStarter& start, const KeepRule& rule);

}  // namespace pawl
