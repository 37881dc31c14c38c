#pragma once

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"
#include "worker/lease/held_trial.h"
#include "worker/lease/stage_times.h"
#include "worker/lease/work_limits.h"
#include "worker/lease/worker_session.h"
#include "worker/trial/trial_device.h"

namespace pawl {

struct LeaseLoopOptions {
  int ahead = 0;  // trials that are leased and built while another is measured; 0: one after the other
  double lease_wait_seconds = 20;
  // When it drains: with what runs, which is then given back, and with an orchestrator that does not answer. The last
  // call may take 10 s more, and all of it has to be over within 30 s.
  Backoff::Duration drain_patience{15};
  WorkLimits limits;
  SessionOptions session;
};

// Registers a worker and works off trials until it is drained: leases, prepares ahead, runs one at a time, renews,
// delivers. The orchestrator may come and go; a trial it no longer wants is dropped.
//
// With limits it also ends by itself, as if drained: after a time without a trial, after a number of trials, or at a
// time of day.
//
// Three kinds of thread share the trials that are held, under one lock: one that leases, some that prepare, one that
// renews; the thread that calls Run measures and delivers. No thread waits for the orchestrator while it holds the
// lock.
class LeaseLoop {
 public:
  LeaseLoop(TrialDevice& device, WorkerClient& client, LeaseLoopOptions options);
  ~LeaseLoop();

  // OK: drained. An error: it could not register, or the GPU failed twice.
  absl::Status Run();

  // Finishes the trial that runs if that takes no longer than the patience, gives the others back, and ends. From any
  // thread.
  void Drain();
  // Ends what runs at its next step and drops it. From any thread.
  void Stop();

 private:
  using Held = std::shared_ptr<HeldTrial>;
  using State = HeldTrial::State;

  absl::Status Work();
  void LeaseTrials();
  void PrepareTrials();
  void RenewLeases();
  // Drains when a limit is reached.
  void WatchLimits();
  // Why it is over now; empty: it is not.
  std::string ReachedLimit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another trial may be leased, beside those that are being leased.
  bool MayTakeMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // What may follow a trial that is held changed: it says of which by its lease.
  void Foresee(const v1::LeaseTrialResponse& foretold);
  void Add(v1::LeaseTrialResponse leased, HeldTrial::Clock::time_point confirmed_until = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const Held& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of those that no thread works on: a thread that does checks by itself.
  void RemoveStopped() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HurryDraining() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The next of each kind; null: there will be none.
  Held NextToPrepare();
  Held NextToRun();
  // Waits until some may be due; none: closing.
  std::optional<std::vector<Held>> NextToRenew();
  void Renew(const Held& held);
  void Prepare(const Held& held);
  void RunOne(const Held& held);
  void Deliver(const Held& held, v1::CompleteTrialRequest request);
  void GiveBackAll();
  void CountFault(const v1::CompleteTrialRequest& request);
  void BeginDraining(absl::Status result);
  bool draining();
  bool GivesUp();
  size_t capacity() const { return 1 + options_.ahead; }

  TrialDevice& device_;
  const LeaseLoopOptions options_;
  WorkerSession session_;
  StageTimes times_;

  absl::Mutex mutex_;
  absl::CondVar place_free_;                                         // or draining
  absl::CondVar changed_;                                            // a trial's state, draining_, closing_
  SteadyCondition closed_;                                           // closing_
  std::vector<Held> held_ ABSL_GUARDED_BY(mutex_);                   // in the order of leasing
  size_t leasing_ ABSL_GUARDED_BY(mutex_) = 0;                       // places that are kept for what is being leased
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;                         // leased so far
  HeldTrial::Clock::time_point idle_since_ ABSL_GUARDED_BY(mutex_);  // where nothing is held
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  HeldTrial::Clock::time_point drain_begin_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;  // no trial is left
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  int faults_ ABSL_GUARDED_BY(mutex_) = 0;      // of the machine, in a row
  int gpu_faults_ ABSL_GUARDED_BY(mutex_) = 0;  // of the GPU

  std::vector<std::thread> threads_;
};

}  // namespace pawl
