#include "agent/drive/ledger.h"

namespace pawl {
namespace {

double MinutesBetween(AgentLedger::Time from, AgentLedger::Time to) {
  return std::chrono::duration<double, std::ratio<60>>(to - from).count();
}

}  // namespace

const char* StopName(AgentStop stop) {
  switch (stop) {
    case AgentStop::kProposals:
      return "proposals";
    case AgentStop::kTokens:
      return "tokens";
    case AgentStop::kDollars:
      return "dollars";
    case AgentStop::kGpuSeconds:
      return "gpuSeconds";
    case AgentStop::kMinutes:
      return "minutes";
    case AgentStop::kWithoutKeep:
      return "withoutKeep";
    case AgentStop::kCampaignEnded:
      return "campaignEnded";
    case AgentStop::kAgentsEnded:
      return "agentsEnded";
    case AgentStop::kInterrupted:
      return "interrupted";
    case AgentStop::kFailed:
      return "failed";
  }
  return "";
}

void AgentLedger::AddAgent(const std::string& author, Time now) {
  absl::MutexLock lock(&mutex_);
  accounts_[author].active = now;
}

bool AgentLedger::Propose(const std::string& author) {
  absl::MutexLock lock(&mutex_);
  int all = 0;
  for (const auto& [name, account] : accounts_) all += account.proposals;
  if (limits_.proposals > 0 && all >= limits_.proposals) return false;
  ++accounts_[author].proposals;
  return true;
}

void AgentLedger::Unpropose(const std::string& author) {
  absl::MutexLock lock(&mutex_);
  --accounts_[author].proposals;
}

void AgentLedger::Called(const std::string& author, Time now) {
  absl::MutexLock lock(&mutex_);
  ++accounts_[author].calls;
  accounts_[author].active = now;
}

void AgentLedger::Active(const std::string& author, Time now) {
  absl::MutexLock lock(&mutex_);
  accounts_[author].active = now;
}

void AgentLedger::Used(const std::string& author, int64_t tokens, double dollars) {
  absl::MutexLock lock(&mutex_);
  accounts_[author].tokens = tokens;
  accounts_[author].dollars = dollars;
}

void AgentLedger::GpuSeconds(double seconds) {
  absl::MutexLock lock(&mutex_);
  gpu_seconds_ = seconds;
}

void AgentLedger::Take(const v1::Event& event) {
  absl::MutexLock lock(&mutex_);
  ended_ = ended_ || event.has_ended();
  const auto count = [&](const std::string& author, bool kept) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const auto found = accounts_.find(author);
    if (found == accounts_.end()) return;
    ++found->second.judged;
    found->second.kept += kept;
    without_keep_ = kept ? 0 : without_keep_ + 1;
    too_many_without_keep_ |= limits_.without_keep > 0 && without_keep_ >= limits_.without_keep;
  };
  if (event.has_proposed()) proposed_[event.proposed().number()] = event.proposed().author();
  const auto proposed = proposed_.find(event.planned().proposal());
  if (event.planned().proposal() > 0 && proposed != proposed_.end() && event.planned().author() != proposed->second) {
    taken_[event.planned().iteration()] = proposed->second;
  }
  if (event.has_dropped()) count(event.dropped().author(), false);
  for (const v1::Iteration& settled : verdicts_.Take(event)) {
    const auto taken = taken_.find(settled.number());
    count(taken == taken_.end() ? settled.author() : taken->second, settled.verdict() == v1::KEPT);
  }
}

std::optional<AgentStop> AgentLedger::Stop(Time now) const {
  absl::MutexLock lock(&mutex_);
  if (ended_) return AgentStop::kCampaignEnded;
  int proposals = 0, judged = 0;
  int64_t tokens = 0;
  double dollars = 0;
  for (const auto& [name, account] : accounts_) {
    proposals += account.proposals;
    judged += account.judged;
    tokens += account.tokens;
    dollars += account.dollars;
  }
  if (limits_.tokens > 0 && tokens >= limits_.tokens) return AgentStop::kTokens;
  if (limits_.dollars > 0 && dollars >= limits_.dollars) return AgentStop::kDollars;
  if (limits_.gpu_seconds > 0 && gpu_seconds_ >= limits_.gpu_seconds) return AgentStop::kGpuSeconds;
  if (limits_.minutes > 0 && MinutesBetween(begun_, now) >= limits_.minutes) return AgentStop::kMinutes;
  if (too_many_without_keep_) return AgentStop::kWithoutKeep;
  if (limits_.proposals > 0 && proposals >= limits_.proposals && judged >= proposals) return AgentStop::kProposals;
  return std::nullopt;
}

bool AgentLedger::Idle(const std::string& author, Time now) const {
  absl::MutexLock lock(&mutex_);
  const auto found = accounts_.find(author);
  return found != accounts_.end() && limits_.idle_minutes > 0 &&
         MinutesBetween(found->second.active, now) >= limits_.idle_minutes;
}

std::map<std::string, AgentLedger::Account> AgentLedger::accounts() const {
  absl::MutexLock lock(&mutex_);
  return accounts_;
}

int AgentLedger::kept() const {
  absl::MutexLock lock(&mutex_);
  int kept = 0;
  for (const auto& [name, account] : accounts_) kept += account.kept;
  return kept;
}

}  // namespace pawl
