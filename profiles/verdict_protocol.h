#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profiles/goal_sizes.h"
#include "profiles/keep_rule.h"

namespace pawl {

// One process that times candidate against parent: each call measures so many more pairs. The first call of the first
// process may measure fewer: those that are SurelySlower, where the rule allows it.
using PairSource = std::function<absl::StatusOr<PairBatch>(int pairs)>;
// Starts such a process; `process` counts them from 0.
using PairSourceStarter = std::function<absl::StatusOr<PairSource>(int process)>;

// The keep rule from the first pair to the result: first_pairs in one process, extended once where that is unclear. If
// the mean is above the threshold then, further processes measure until they agree that it is, that it is not, or until
// there are max_processes; also while `doubted` says, of a candidate that is faster, that what was measured does not
// tell whether the comparison can be believed. Every comparison Pawl decides by goes through here.
absl::StatusOr<v1::Comparison> CompareByProtocol(const PairSourceStarter& start, const v1::ProcessNoise& noise,
                                                 const KeepRule& rule, const std::function<bool()>& doubted = {});

// What a comparison at several sizes goes by.
struct SizesProtocol {
  std::vector<SizeWeight> sizes;  // in the order in which they are timed
  // The first process stops before the next size when the candidate can't be kept any more: not even with
  // rule.untimed_speedup at what is left, or since a size is slower than `worst` of the parent, beyond doubt.
  bool stop_early = true;
  double worst = 0;
  // The size at which further processes measure rule.extended_pairs at once, because the seat test needs them. At the
  // others they measure first_pairs, and the rest only if these do not show that the candidate is faster. Empty: at
  // every size.
  std::string whole = {};
};

// One process that times at several sizes; `size` is a place in SizesProtocol::sizes.
using SizedSource = std::function<absl::StatusOr<PairBatch>(size_t size, int pairs)>;
using SizedSourceStarter = std::function<absl::StatusOr<SizedSource>(int process)>;

// The same for a goal over several sizes. Every process after the first times every size.
absl::StatusOr<v1::Comparison> CompareSizesByProtocol(const SizedSourceStarter& start, const SizesProtocol& protocol,
                                                      const v1::ProcessNoise& noise, const KeepRule& rule,
                                                      const std::function<bool()>& doubted = {});

}  // namespace pawl
