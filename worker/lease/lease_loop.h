#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "worker/lease/held_trial.h"
#include "worker/lease/stage_times.h"
#include "worker/lease/worker_session.h"
#include "worker/trial/trial_device.h"

namespace pawl {

struct LeaseLoopOptions {
  int ahead = 0;  // trials that are leased and built while another is measured; 0: one after the other
  double lease_wait_seconds = 20;
  // When it drains: with what runs, which is then given back, and with an orchestrator that does not answer. The last
  // call may take 10 s more, and all of it has to be over within 30 s.
  Backoff::Duration drain_patience{15};
  SessionOptions session;
};

// Registers a worker and works off trials until it is drained: leases, prepares ahead, runs one at a time, renews,
// delivers. The orchestrator may come and go; what it no longer wants is dropped.
//
// Three kinds of thread share the trials that are held, under one lock: one that leases, some that prepare, one that
// renews; the thread that calls Run measures and delivers. Nobody waits for the orchestrator while holding the lock.
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

  void LeaseTrials();
  void PrepareTrials();
  void RenewLeases();

  void Add(v1::LeaseTrialResponse leased);
  void Remove(const Held& held);
  void RemoveStopped();
  void HurryDraining();
  Held NextToRun();
  void Prepare(HeldTrial& held);
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

  std::mutex mutex_;                    // guards what follows
  std::condition_variable place_free_;  // or draining
  std::condition_variable changed_;     // a trial's state, draining_, closing_
  std::condition_variable closed_;      // closing_
  std::vector<Held> held_;              // in the order of leasing
  size_t leasing_ = 0;                  // places that are kept for what is being leased
  bool draining_ = false;
  HeldTrial::Clock::time_point drain_begin_;
  bool stopped_ = false;
  bool closing_ = false;  // no trial is left
  absl::Status result_;
  int faults_ = 0;      // of the machine, in a row
  int gpu_faults_ = 0;  // of the GPU

  std::vector<std::thread> threads_;
};

}  // namespace pawl
