#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/revision/settled_verdicts.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// What agents on one campaign may use up, all together. 0: no limit.
struct AgentLimits {
  int proposals = 0;
  int64_t tokens = 0;
  double dollars = 0;
  double gpu_seconds = 0;
  double minutes = 0;       // of wall time
  int without_keep = 0;     // proposals in a row that were judged and not kept
  double idle_minutes = 0;  // since an agent last called a tool; ends that agent only
};

// Why it stopped, as a program reads it.
enum class AgentStop {
  kProposals,
  kTokens,
  kDollars,
  kGpuSeconds,
  kMinutes,
  kWithoutKeep,
  kCampaignEnded,
  kAgentsEnded,
  kInterrupted,
  kFailed,
};

// "proposals", "campaignEnded" and so on.
const char* StopName(AgentStop stop);

// What agents on one campaign have used up, and what came of their proposals. Thread-safe.
class AgentLedger {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Account {
    int proposals = 0;
    int kept = 0;
    int judged = 0;
    int64_t tokens = 0;
    double dollars = 0;
    int calls = 0;  // of tools
    Time active;    // it called a tool
  };

  AgentLedger(AgentLimits limits, Time begun) : limits_(limits), begun_(begun) {}

  void AddAgent(const std::string& author, Time now);

  // Whether one more proposal may be made; then it counts. Unproposed takes one back that was refused.
  bool Propose(const std::string& author);
  void Unpropose(const std::string& author);
  void Called(const std::string& author, Time now);  // a tool
  void Active(const std::string& author, Time now);
  void Used(const std::string& author, int64_t tokens, double dollars);
  void GpuSeconds(double seconds);
  // Counts verdicts on proposals of the agents, and sees the campaign's end.
  void Take(const v1::Event& event);

  // Nothing: they may go on. Proposals that are used up stop the agents only once all of them are judged.
  std::optional<AgentStop> Stop(Time now) const;
  bool Idle(const std::string& author, Time now) const;
  std::map<std::string, Account> accounts() const;
  int kept() const;
  const AgentLimits& limits() const { return limits_; }

 private:
  const AgentLimits limits_;
  const Time begun_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Account> accounts_ ABSL_GUARDED_BY(mutex_);
  double gpu_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
  SettledVerdicts verdicts_ ABSL_GUARDED_BY(mutex_);
  // Pawl may choose by itself what an agent proposed.
  std::map<int, std::string> proposed_ ABSL_GUARDED_BY(mutex_);  // authors by the number of the proposal
  std::map<int, std::string> taken_ ABSL_GUARDED_BY(mutex_);     // and by the iteration that is it
  int without_keep_ ABSL_GUARDED_BY(mutex_) = 0;
  bool too_many_without_keep_ ABSL_GUARDED_BY(mutex_) = false;  // at any time: a keep after it does not undo it
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pawl
