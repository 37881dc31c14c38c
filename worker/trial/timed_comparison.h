#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/evidence.pb.h"
#include "pawl/v1/trial.pb.h"
#include "profiles/goal_sizes.h"
#include "profiles/keep_rule.h"
#include "profiles/verdict_protocol.h"
#include "worker/trial/timer.h"

namespace pawl {

// Timed calls that the processes that confirm check at a size, all together: a candidate that cheats in 5 % of its
// calls passes once in 1000. More where the reference is quick, so that one that cheats in 1.4 % of them does.
inline constexpr int kConfirmingCalls = 135;
inline constexpr int kMostConfirmingCalls = 500;
inline constexpr double kConfirmingSeconds = 0.3;              // of the reference, for more than kConfirmingCalls
inline constexpr int64_t kConfirmingBytes = int64_t{1} << 30;  // of what is kept of their outputs
inline constexpr int kLeastConfirmingCalls = 8;                // but no fewer than these, up to 4 GiB

// How many timed calls each process of a comparison checks.
class ChecksOfComparison {
 public:
  // Those of a process that confirms are what earlier ones left to do, but no fewer than the first process checks.
  TimingOptions Options(const std::string& size, int pairs, int process) const;
  void Add(const std::string& size, int process, const Timing& timing);

 private:
  struct Checked {
    int confirming = 0;
    double call_seconds = 0;  // that the reference took for each in the last process
  };
  std::map<std::string, Checked> sizes_;
};

// What a call takes.
struct SideTimes {
  double warm_us = 0, cold_us = 0, parent_warm_us = 0, parent_cold_us = 0;
  size_t pairs = 0;  // that they come from
};

// The pairs of one process.
struct TimedProcess {
  std::vector<v1::PairSample> pairs;  // of all sizes
  int discarded = 0;
  std::vector<std::string> disturbances;   // why
  std::map<std::string, SideTimes> times;  // by size
};

// Where the pairs of a comparison come from: a runner, or a recording.
struct PairTimer {
  // The sizes of the goal, in the order in which they are timed, and when to stop.
  SizesProtocol protocol{.sizes = {{"", 1}}};
  // Times candidate against parent at a size, in the present process. `process` counts the processes of the comparison:
  // those after 0 confirm what is about to be kept.
  std::function<absl::StatusOr<Timing>(const std::string& size, int pairs, int process)> time;
  // The next pairs come from a new process.
  std::function<void()> start_fresh_process;
  // Said before each process starts to measure at a size.
  std::function<void(const std::string& size, int process)> report;
  // Whether another process should measure what was found faster (verdict_protocol.h). Empty: none.
  std::function<bool(const std::vector<TimedProcess>& processes)> doubted;
};

struct TimedComparison {
  std::optional<v1::Failure> failure;  // of the candidate while it was timed
  v1::Comparison comparison;
  std::vector<TimedProcess> processes;  // those after the first confirm
};

// What the trial's comparison is judged by.
KeepRule RuleOf(const v1::Trial& trial);

// Compares by profiles/verdict_protocol.h and keeps every pair; with several sizes, each says its own. Where the first
// process could not measure all its first pairs, because clocks or throttle reasons kept changing, a fresh one measures
// in its place, once at each size. Fewer pairs that are SurelySlower are enough where the rule allows it.
absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding,
                                             const v1::ProcessNoise& noise, const KeepRule& rule);

// Each reason once.
void AddDisturbances(const std::vector<std::string>& reasons, v1::TrialResult* result);

// Means over the processes that were not picked for being good: all but the first, where there are others. All 0:
// nothing was timed at this size.
SideTimes TimesAt(const TimedComparison& timed, const std::string& size);

// Writes pairs into a trial's result, and the times at this size.
void SetTimes(const TimedComparison& timed, const std::string& size, v1::TrialResult* result);

// The sizes with those first whose timing takes most of the objective's variance away for its time: squared weight over
// seconds. What takes no longer than a process takes to begin counts as that.
std::vector<SizeWeight> InformativeFirst(std::vector<SizeWeight> sizes, const std::map<std::string, double>& seconds);

}  // namespace pawl
