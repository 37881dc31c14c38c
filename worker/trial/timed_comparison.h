#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/keep_rule.h"
#include "worker/trial/timer.h"

namespace pawl {

// Where the pairs of a comparison come from: a runner, or a recording.
struct PairTimer {
  // Times candidate against parent in the present process.
  std::function<absl::StatusOr<Timing>(int pairs)> time;
  // The next pairs come from a new process with fresh seeds.
  std::function<void()> start_fresh_process;
  // Times the parent against itself in a new process, with no candidate near it.
  std::function<absl::StatusOr<Timing>(int pairs)> time_parent_alone;
  // Said before each process starts to measure; `confirms`: the one that must agree.
  std::function<void(bool confirms)> report;
};

// The pairs of one process.
struct TimedProcess {
  std::vector<v1::PairSample> pairs;
  int discarded = 0;
  double warm_us = 0, cold_us = 0, parent_warm_us = 0, parent_cold_us = 0;
};

struct TimedComparison {
  std::optional<v1::Failure> failure;  // of the candidate while it was timed
  v1::Comparison comparison;
  TimedProcess first;
  std::optional<TimedProcess> confirming;  // where the first found it faster
  std::string notes;

  // The process whose times count: the one that was not picked for being good.
  const TimedProcess& counted() const { return confirming && !confirming->pairs.empty() ? *confirming : first; }
};

// Compares by profiles/verdict_protocol.h and keeps every pair. A parent whose time is off what is stored for it
// (stored_parent_us; 0: nothing) is not believed: a fresh process decides. Where it is off there too, the parent is
// timed alone: if it is as slow by itself, the GPU has changed; if not, the candidate slows its parent and fails.
absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding, double stored_parent_us,
                                             const KeepRule& rule);

// Writes pairs and times into a trial's result.
void SetTimes(const TimedComparison& timed, v1::TrialResult* result);

}  // namespace pawl
