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

// Timed calls that a process that confirms checks: a candidate that cheats in 1.4 % of its calls passes once in 1000.
inline constexpr int kConfirmingCalls = 500;
inline constexpr int64_t kConfirmingBytes = int64_t{1} << 30;  // of their outputs; fewer calls where those are large
inline constexpr int kLeastConfirmingCalls = 8;                // but no fewer than these, up to 4 GiB

// The pairs of one process.
struct TimedProcess {
  std::vector<v1::PairSample> pairs;
  int discarded = 0;
  std::vector<std::string> disturbances;  // why
  double warm_us = 0, cold_us = 0, parent_warm_us = 0, parent_cold_us = 0;
};

// Where the pairs of a comparison come from: a runner, or a recording.
struct PairTimer {
  // Times candidate against parent in the present process. `process` counts the processes of the comparison: those
  // after 0 confirm what is about to be kept.
  std::function<absl::StatusOr<Timing>(int pairs, int process)> time;
  // The next pairs come from a new process.
  std::function<void()> start_fresh_process;
  // Said before each process starts to measure.
  std::function<void(int process)> report;
  // Whether another process should measure what was found faster (verdict_protocol.h). Empty: none.
  std::function<bool(const std::vector<TimedProcess>& processes)> doubted;
};

struct TimedComparison {
  std::optional<v1::Failure> failure;  // of the candidate while it was timed
  v1::Comparison comparison;
  std::vector<TimedProcess> processes;  // those after the first confirm
};

// Compares by profiles/verdict_protocol.h and keeps every pair. Where the first process could not measure all its
// pairs, because clocks or throttle reasons kept changing, a fresh one measures in its place, once.
absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding,
                                             const v1::ProcessNoise& noise, const KeepRule& rule);

// Each reason once.
void AddDisturbances(const std::vector<std::string>& reasons, v1::TrialResult* result);

// Writes pairs and times into a trial's result. The times are means over the processes that were not picked for being
// good: all but the first, where there are others.
void SetTimes(const TimedComparison& timed, v1::TrialResult* result);

}  // namespace pawl
