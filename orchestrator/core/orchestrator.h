#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/sync/steady_condition.h"
#include "db/store.h"
#include "orchestrator/core/committer.h"
#include "orchestrator/core/leases.h"
#include "orchestrator/core/live_state.h"
#include "orchestrator/core/options.h"
#include "orchestrator/core/scheduler.h"
#include "orchestrator/core/service_metrics.h"
#include "orchestrator/core/stored_campaign.h"
#include "orchestrator/core/trial_results.h"
#include "orchestrator/core/watch_hub.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "orchestrator/meters/meters.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

// What the services call. Everything that changes a campaign goes through here, under one lock, as events that are
// applied to the state in memory (live_state.h), committed to the store in one transaction (committer.h), and only then
// answered. The gRPC services forward to it, the engine decides for it, the store remembers for it; decisions.cc says
// what follows from a campaign's events, scheduler.h which worker gets which trial, leases.h what becomes of one whose
// worker is lost.
//
// When a commit fails, memory is ahead of the disk: nothing is served (UNAVAILABLE) until Tick could read the state
// again from the store, the same way as at the start (recovery.h).
//
// Thread-safe. Store, chooser and hub must outlive it.
class Orchestrator {
 public:
  using Clock = std::function<absl::Time()>;
  Orchestrator(Store& store, const Chooser& chooser, WatchHub& hub, Clock clock, OrchestratorOptions options);

  // Reads unfinished campaigns and workers. Leases that were out are adopted: their workers have a whole lease to be
  // heard of, once; where the database is a copy, all leases end. Before anything else.
  absl::Status Load();

  // What people ask for; errors as campaign_service.proto has them.
  absl::StatusOr<v1::Campaign> Submit(const v1::SubmitCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Get(const v1::GetCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Pause(const v1::PauseCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Resume(const v1::ResumeCampaignRequest& request);
  absl::StatusOr<v1::Campaign> Cancel(const v1::CancelCampaignRequest& request);
  absl::StatusOr<v1::VerifyIterationResponse> Verify(const v1::VerifyIterationRequest& request);
  absl::StatusOr<v1::ProposeChangeResponse> Propose(const v1::ProposeChangeRequest& request);
  absl::StatusOr<v1::Situation> Situation(const v1::GetSituationRequest& request);
  absl::StatusOr<v1::ListPatternsResponse> Patterns(const v1::ListPatternsRequest& request);
  absl::StatusOr<v1::ImportPatternsResponse> ImportPatterns(const v1::ImportPatternsRequest& request);
  absl::StatusOr<v1::ListWorkersResponse> Workers(const v1::ListWorkersRequest& request);
  absl::StatusOr<v1::Maintenance> SetMaintenance(const v1::SetMaintenanceRequest& request);
  v1::Maintenance GetMaintenance();
  // Says of unfinished campaigns that wait for the end of maintenance, or for a limit of their author, that they do.
  void AddWaits(v1::ListCampaignsResponse* list);

  // What workers ask for; errors as worker_service.proto has them.
  absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request);
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request);
  absl::StatusOr<v1::PutBlobResponse> PutBlob(const v1::PutBlobRequest& request);
  absl::StatusOr<v1::DrainWorkerResponse> Drain(const v1::DrainWorkerRequest& request);
  // Answers at once or later, from any thread, exactly once unless forgotten. Returns what to Forget it by; 0:
  // answered.
  using LeaseAnswer = pawl::LeaseAnswer;
  uint64_t Lease(const v1::LeaseTrialRequest& request, LeaseAnswer answer);
  void Forget(uint64_t waiting);
  // Answers once, from a thread of its own; the request must live until then. Results that arrive while others are
  // being committed are committed together: a commit costs about the same for one as for many, and no thread of the
  // caller waits for it.
  using CompleteAnswer = pawl::CompleteAnswer;
  void Complete(const v1::CompleteTrialRequest& request, CompleteAnswer answer);

  // To be called a few times a second: lets leases and waiting run out, and recovers from a failed commit.
  void Tick();
  // No more leases from now on; those who wait are sent away.
  void StopLeasing();
  int leases_out() const;
  bool serving() const;

  // Counted since the start, and how things stand now.
  Meters& meters() { return meters_; }
  ServiceFigures Figures() const;

 private:
  // Holds the lock for a request. What a commit leaves to be done is done at its end, once the lock is free.
  class ABSL_SCOPED_LOCKABLE Turn {
   public:
    explicit Turn(absl::Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) { mutex_->Lock(); }
    ~Turn() ABSL_UNLOCK_FUNCTION() {
      mutex_->Unlock();
      for (const auto& act : deferred_) act();
    }
    Turn(const Turn&) = delete;
    Deferred* deferred() { return &deferred_; }

   private:
    absl::Mutex* const mutex_;
    Deferred deferred_;
  };

  Step Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return Step{.now = clock_(), .served = state_.CampaignTime()}; }
  absl::Status EndLeasesOfOriginal(Deferred* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes down how far leases and the served time are, for the next start.
  void NoteLeases(Deferred* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // True: a commit had failed, and the state was read again.
  bool Recover() ABSL_LOCKS_EXCLUDED(mutex_);
  // Offers trials to those who wait, commits the step, and leaves in `deferred` to decide what follows from it.
  absl::Status Commit(Step* step, Deferred* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // The decisions to be made for those of the campaigns for which there may be one, and that no other thread makes.
  std::vector<OpenDecision> Open(const std::set<int64_t>& numbers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes them, and those that follow. Their trials are leased to `next` first. `results` are what they follow from,
  // where that is not written yet; afterwards it says whether it was.
  void Decide(std::vector<OpenDecision> open, std::vector<NextLease> next = {},
              const std::shared_ptr<AppliedResults>& results = nullptr) ABSL_LOCKS_EXCLUDED(mutex_);
  // Commits what was decided where the campaign is still the same, and returns what is to be decided then. Leaves in
  // `next` who may get a trial from that.
  std::vector<OpenDecision> Close(std::vector<OpenDecision> open, std::vector<NextLease>* next,
                                  const std::shared_ptr<AppliedResults>& results) ABSL_LOCKS_EXCLUDED(mutex_);
  // Writes all results that were applied: before one of their campaigns is changed.
  absl::Status WriteResults(Deferred* deferred) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What was to be decided when the last process ended, or a commit failed.
  void DecideAfterLoad() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits a moment for a decision about the campaign, which may last longer. Releases the lock meanwhile.
  void AwaitDecision(const std::string& campaign) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing: the best variant is another than the one that was patched.
  std::optional<absl::StatusOr<v1::ProposeChangeResponse>> ProposePatched(const v1::ProposeChangeRequest& request,
                                                                          PatchedBest patched)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Serving() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return state_.broken; }
  absl::StatusOr<v1::Campaign> Stored(int64_t number);
  // To be read.
  absl::StatusOr<std::shared_ptr<const CampaignState>> Unended(const std::string& field, const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // To be changed. Before anything else of the turn: it may release the lock for a moment.
  absl::StatusOr<CampaignState*> Steered(const std::string& field, const std::string& name, Deferred* deferred)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CancelUnended(int64_t number, const v1::CancelCampaignRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveUpVerifications(Step* step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<v1::LeaseTrialResponse> LeaseOrWait(const v1::LeaseTrialRequest& request, const LeaseAnswer& answer,
                                                     uint64_t* waiting) ABSL_LOCKS_EXCLUDED(mutex_);
  void CompleteTogether(const std::vector<Completion>& together) ABSL_LOCKS_EXCLUDED(mutex_);
  // Applies the results, and opens the decisions that follow. Those of campaigns in use are held back, which leaves
  // them without an answer.
  std::shared_ptr<AppliedResults> ApplyTogether(std::vector<CheckedCompletion>* together,
                                                std::vector<OpenDecision>* open) ABSL_LOCKS_EXCLUDED(mutex_);
  // Why the trial of a result is not open.
  absl::Status NotOpen(const LeaseName& lease);
  CheckedCompletion Check(const Completion& completion) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CompleteOne(Step* step, CheckedCompletion* checked) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Store& store_;
  const Chooser& chooser_;
  WatchHub& hub_;
  const Clock clock_;
  const OrchestratorOptions options_;
  BundlePool bundles_;
  Meters meters_;

  mutable absl::Mutex mutex_;
  LiveState state_ ABSL_GUARDED_BY(mutex_);
  Committer committer_ ABSL_GUARDED_BY(mutex_);
  Leases leases_ ABSL_GUARDED_BY(mutex_);
  Scheduler scheduler_ ABSL_GUARDED_BY(mutex_);
  absl::Duration noted_ ABSL_GUARDED_BY(mutex_);                             // in served time
  std::map<int64_t, std::vector<Completion>> held_ ABSL_GUARDED_BY(mutex_);  // until their campaign is decided
  std::vector<std::shared_ptr<AppliedResults>> unwritten_ ABSL_GUARDED_BY(mutex_);
  SteadyCondition decided_;  // some of the decisions were closed

  CompletionQueue completions_;  // last: everything is there when its threads start
};

}  // namespace pawl
