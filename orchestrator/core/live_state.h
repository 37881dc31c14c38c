#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "orchestrator/core/author_limits.h"
#include "orchestrator/core/options.h"
#include "orchestrator/core/pattern_library.h"
#include "orchestrator/core/worker_list.h"
#include "orchestrator/engine/search/single_change.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/event.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

using TrialKey = std::pair<int64_t, int>;             // campaign, trial
using Deferred = std::vector<std::function<void()>>;  // to be done once the orchestrator's lock is free
using LeaseAnswer = std::function<void(absl::StatusOr<v1::LeaseTrialResponse>)>;

// Trials to be leased.
class TrialQueue {
 public:
  // In the order in which an author's trials are leased: by priority, the oldest first.
  struct Key {
    int after = 0;  // the campaign's priority, negated
    absl::Time planned_at;
    int64_t campaign = 0;
    int trial = 0;
    bool operator<(const Key& other) const {
      return std::tie(after, planned_at, campaign, trial) <
             std::tie(other.after, other.planned_at, other.campaign, other.trial);
    }
  };

  // After every change of the campaign.
  void Update(int64_t number, const CampaignState& campaign);
  void Remove(int64_t number);
  void Clear();

  bool empty() const { return by_author_.empty(); }
  bool HasTrialOf(int64_t number) const;
  // No author without trials.
  const std::map<std::string, std::set<Key>>& by_author() const { return by_author_; }

 private:
  struct Trials {
    std::string author;
    std::vector<Key> keys;
  };
  void Erase(const Trials& trials);

  std::map<std::string, std::set<Key>> by_author_;
  std::map<int64_t, Trials> by_campaign_;
};

// What baselines took in earlier campaigns: the newest campaign's time for the same contract, device, size and
// baseline.
class KnownBaselines {
 public:
  // Only a campaign that finished counts: its baseline was never in doubt.
  static bool Counts(const v1::Campaign& summary) {
    return summary.state() == v1::FINISHED && summary.baseline_us() > 0;
  }
  // ContractHash of its bundle; empty: that is not here any more, and what it says is known for the same bundle only.
  void Note(const v1::Campaign& summary, const std::string& contract_hash);
  void Clear() { us_.clear(); }

  // What the campaign's baseline should take, in us; 0: not known.
  double Expected(const CampaignState& campaign, const v1::TrialResult& result) const;

 private:
  std::map<std::string, double> us_;
};

// Counts the time in which orchestrators of a database have served. It goes on after a restart from what was stored, so
// that an outage counts for nothing; neither does time in which this process was stopped (SIGSTOP, a laptop's lid). It
// goes by a monotonic clock: setting the system's clock changes nothing. Not thread-safe.
class ServedClock {
 public:
  using Monotonic = std::function<absl::Duration()>;
  // A longer gap between two calls was a stop of this process.
  ServedClock(Monotonic monotonic, absl::Duration longest_gap)
      : monotonic_(std::move(monotonic)), longest_gap_(longest_gap) {}

  // Goes on from here.
  void Start(absl::Duration served);
  absl::Duration Now();

 private:
  const Monotonic monotonic_;
  const absl::Duration longest_gap_;
  absl::Duration served_;
  absl::Duration last_;
  std::chrono::steady_clock::time_point last_call_;
};

// A LeaseTrial call that waits for a trial.
struct WaitingLease {
  std::string worker, instance;
  absl::Time deadline;
  LeaseAnswer answer;
};

// A lease that is out.
struct HeldLease {
  absl::Duration deadline;  // in served time
  bool renewed = false;     // at least once
  bool adopted = false;     // a start extended the deadline, and it was not renewed since
};

// For how long no trial of an author could be leased because of a limit, the last time. In campaign time.
struct LimitedSpan {
  absl::Duration since;
  std::optional<absl::Duration> until;  // absent: it lasts
};

// What a thread decides for a campaign outside the orchestrator's lock (decisions.cc).
struct OpenDecision {
  int64_t number = 0;
  std::shared_ptr<const CampaignState> campaign;
  Moment now;
  int slots = 1;
  // An edit that has to be applied before the engine can decide; no bases: there is none.
  std::string patch = {};
  std::optional<PatchBases> bases = {};

  // The outcome.
  PatchedBest patched = {};
  std::optional<v1::Event> event = {};
};

// What the orchestrator holds in memory. Events are applied here first and then committed, so it is ahead of the store
// until Committer::Commit has returned OK. Not thread-safe: the orchestrator's lock guards it.
struct LiveState {
  explicit LiveState(const OrchestratorOptions& options);

  // Forgets a campaign that needs nothing more.
  void Drop(int64_t number);
  // A thread decides for it outside the lock: it must not be changed, nor asked what needs its memo or its parsers.
  bool InUse(int64_t number) const;
  // The campaign, to be changed. Where it is in use a copy takes its place, and what is being decided will be dropped.
  CampaignState& Own(int64_t number);
  // The served time without maintenance: the time of events, budgets and waits for proposals. Leases go by `served`.
  absl::Duration CampaignTime();
  // Answers everybody who waits for a lease.
  void SendAway(const absl::StatusOr<v1::LeaseTrialResponse>& answer, Deferred* deferred);

  std::map<int64_t, std::shared_ptr<CampaignState>> campaigns;  // unfinished, or with a trial that verifies
  std::map<int64_t, const CampaignState*> deciding;             // campaigns for which a thread decides, as it has them
  std::set<int64_t> overtaken;                                  // the last decision about these was dropped
  std::map<TrialKey, HeldLease> leases;                         // that are out
  std::set<std::string> unconfirmed;                            // workers that never renewed their last lease
  std::map<TrialKey, std::set<std::string>> failed_by;          // workers whose machines could not run it
  TrialQueue queue;
  WorkerList workers;
  PatternLibrary patterns;
  KnownBaselines baselines;
  AuthorLimits limits;
  std::map<std::string, LimitedSpan> limited;  // by author
  v1::MaintenanceNote maintenance;
  std::map<uint64_t, WaitingLease> waiting;  // oldest first
  uint64_t next_waiting = 1;
  Moment loaded_at{absl::Time()};
  ServedClock served;
  int64_t next_campaign = 1;
  bool leasing = true;
  absl::Status broken = absl::UnavailableError("starting");  // not OK: memory can't be trusted, nothing is served
};

// Unfinished campaigns, and those that are verified, are in memory with what people sent for them: bundles, of which a
// shared one counts once, proposals that wait, the sources that proposed edits make, and the files of a hand-off.
//
// RESOURCE_EXHAUSTED: with this many bytes more, those of this author or those of all would be more than the options
// allow. `bundle_hash` names a bundle that they are of; empty: they are of a proposal.
absl::Status CheckHeldBytes(const LiveState& state, const OrchestratorOptions& options, const std::string& author,
                            int64_t bytes, const std::string& bundle_hash = "");

}  // namespace pawl
