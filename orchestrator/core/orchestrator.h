#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/bundle_pool.h"
#include "orchestrator/core/pattern_library.h"
#include "orchestrator/core/watch_hub.h"
#include "orchestrator/core/worker_list.h"
#include "orchestrator/engine/search/chooser.h"
#include "orchestrator/engine/state/campaign.h"
#include "pawl/v1/campaign_service.pb.h"
#include "pawl/v1/worker_service.pb.h"
#include "profiles/profile_set.h"

namespace pawl {

struct OrchestratorOptions {
  absl::Duration lease = absl::Seconds(15);
  absl::Duration renew = absl::Seconds(5);
  int max_unfinished = 1000;                            // campaigns; more are refused
  int max_killed = 3;                                   // workers lost to a trial before it is put aside
  absl::Duration verification = absl::Seconds(60);      // that no worker took is given up
  absl::Duration forget_workers = absl::Hours(24 * 7);  // not heard of for so long, at the next start
  const ProfileSet* profiles = &ProfileSet::Default();  // rules and gates; must outlive the orchestrator
  // Told of each campaign that has ended, once that is on disk, on the thread that ended it: it must not take long.
  std::function<void(int64_t)> ended = nullptr;
};

// Decides and locks: everything that changes a campaign goes through here, under one lock, as events that are applied
// to the state in memory, committed to the store in one transaction, and only then answered. The gRPC services forward
// to it, the engine decides for it, the store remembers for it.
//
// When a commit fails, memory is ahead of the disk: nothing is served (UNAVAILABLE) until Tick could read the state
// again from the store, the same way as at the start.
//
// Thread-safe. Store, chooser and hub must outlive it.
class Orchestrator {
 public:
  using Clock = std::function<absl::Time()>;
  Orchestrator(Store& store, const Chooser& chooser, WatchHub& hub, Clock clock, OrchestratorOptions options);
  ~Orchestrator();

  // Reads unfinished campaigns and workers. Leases that were out are adopted: their workers have a whole lease to be
  // heard of. Before anything else.
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

  // What workers ask for; errors as worker_service.proto has them.
  absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request);
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request);
  absl::StatusOr<v1::PutBlobResponse> PutBlob(const v1::PutBlobRequest& request);
  absl::StatusOr<v1::DrainWorkerResponse> Drain(const v1::DrainWorkerRequest& request);
  // Answers at once or later, from any thread, exactly once unless forgotten. Returns what to Forget it by; 0:
  // answered.
  using LeaseAnswer = std::function<void(absl::StatusOr<v1::LeaseTrialResponse>)>;
  uint64_t Lease(const v1::LeaseTrialRequest& request, LeaseAnswer answer);
  void Forget(uint64_t waiting);
  // Answers once, from a thread of its own; the request must live until then. Results that arrive while others are
  // being committed are committed together: a commit costs about the same for one as for many, and no thread of the
  // caller waits for it.
  using CompleteAnswer = std::function<void(absl::StatusOr<v1::CompleteTrialResponse>)>;
  void Complete(const v1::CompleteTrialRequest& request, CompleteAnswer answer);

  // To be called a few times a second: lets leases and waiting run out, and recovers from a failed commit.
  void Tick();
  // No more leases from now on; those who wait are sent away.
  void StopLeasing();
  int leases_out() const;
  bool serving() const;

 private:
  using TrialKey = std::pair<int64_t, int>;               // campaign, trial
  using QueueKey = std::tuple<absl::Time, int64_t, int>;  // planned at, campaign, trial
  using After = std::vector<std::function<void()>>;       // to be done once the lock is free
  struct Waiting {
    std::string worker, instance;
    absl::Time deadline;
    LeaseAnswer answer;
  };
  struct Offer {
    LeaseAnswer answer;
    v1::LeaseTrialResponse response;
  };
  struct Completion {
    const v1::CompleteTrialRequest* request;
    CompleteAnswer answer;
  };
  // One transaction in the making.
  struct Step {
    absl::Time now;
    Writes writes;
    std::set<int64_t> touched;
    std::vector<Offer> offers;
    std::vector<std::string> lines;  // for the log, once it is committed
  };

  // Without the lock.
  void WorkOffCompletions();
  void CompleteTogether(const std::vector<Completion>& together);

  // Runs `body` under the lock, and what it leaves to be done once the lock is free.
  template <typename Body>
  auto Locked(Body body) {
    After after;
    auto result = [&] {
      std::lock_guard lock(mutex_);
      return body(&after);
    }();
    for (const auto& act : after) act();
    return result;
  }

  // All of these need the lock.
  Step Begin() const {
    Step step;
    step.now = clock_();
    return step;
  }
  void Add(Step* step, CampaignState* campaign, v1::Event event);
  void Plan(Step* step);
  void OfferTrials(Step* step);
  bool TakeTrial(Step* step, const std::string& worker, v1::LeaseTrialResponse* response);
  absl::Status CompleteOne(Step* step, const v1::CompleteTrialRequest& request);
  absl::Status Commit(Step* step, After* after);
  void Lose(Step* step, TrialKey key, v1::LeaseLost::Reason reason, const std::string& message);
  void Requeue(int64_t number, const CampaignState& campaign);
  void Drop(int64_t number);
  absl::Status LoadAll();
  absl::StatusOr<std::unique_ptr<CampaignState>> LoadCampaign(int64_t number);
  absl::StatusOr<CampaignState*> Unended(const std::string& field, const std::string& name);
  absl::StatusOr<v1::Campaign> Stored(int64_t number);
  absl::Status Serving() const;
  // Sets waiting_for and message.
  void SayWhatItWaitsFor(const CampaignState& campaign, v1::Campaign* said) const;
  v1::Trial TrialOf(const CampaignState& campaign, const OpenTrial& open) const;
  absl::Status Recover();
  void ForgiveStall();
  void GiveUpVerifications(Step* step);
  int SlotsOf(const CampaignState& campaign, absl::Time now) const;
  double ExpectedBaseline(const CampaignState& campaign, const v1::TrialResult& result) const;
  void NoteBaseline(const v1::Campaign& summary);

  Store& store_;
  const Chooser& chooser_;
  WatchHub& hub_;
  const Clock clock_;
  const OrchestratorOptions options_;

  mutable std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<CampaignState>> campaigns_;  // unfinished, or with a trial that verifies
  BundlePool bundles_;                                           // of these
  std::map<TrialKey, absl::Time> deadlines_;                     // of leases
  std::set<QueueKey> queue_;                                     // trials to be leased, oldest first
  std::map<int64_t, std::vector<QueueKey>> queued_;              // the same by campaign
  WorkerList workers_;
  PatternLibrary patterns_;
  std::map<uint64_t, Waiting> waiting_;  // oldest first
  uint64_t next_waiting_ = 1;
  std::map<std::string, double> baselines_;  // us, by bundle, device, size and what it is: the newest campaign's
  absl::Time loaded_at_;
  int64_t next_campaign_ = 1;
  bool leasing_ = true;
  std::optional<std::chrono::steady_clock::time_point> last_tick_;
  absl::Status broken_ = absl::UnavailableError("starting");  // not OK: memory can't be trusted

  std::mutex completions_mutex_;  // guards what follows; never held together with the other
  std::condition_variable completion_arrived_;
  std::deque<Completion> completions_;
  bool ending_ = false;
  std::thread completer_;  // last: everything is there when it starts
};

}  // namespace pawl
