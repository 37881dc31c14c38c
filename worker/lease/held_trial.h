#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/worker_service.pb.h"
#include "worker/lease/stage_times.h"
#include "worker/trial/trial_device.h"

namespace pawl {

// A trial that this worker has leased, and how it gets on. Thread-safe, apart from what the lease loop's lock guards.
class HeldTrial : public TrialObserver {
 public:
  using Clock = std::chrono::steady_clock;

  HeldTrial(v1::LeaseTrialResponse leased, const StageTimes& times);

  const v1::Trial& trial() const { return leased_.trial(); }
  const std::string& lease() const { return leased_.lease(); }
  // What may be asked for after it: as it was leased, or as the orchestrator said since.
  std::vector<v1::ForeseenVariant> foreseen() const;
  void Foresee(std::vector<v1::ForeseenVariant> foreseen);
  const std::string& campaign() const { return campaign_; }
  // For log lines: "campaigns/7/iterations/12".
  const std::string& what() const { return trial().iteration().empty() ? trial().name() : trial().iteration(); }

  void Report(v1::Stage stage, int step, int steps, const std::string& text) override;
  bool stopped() const override { return stopped_; }
  void Stop() { stopped_ = true; }

  v1::Progress Latest() const;

  // Guarded by the lease loop's lock; `prepared` and `fault` belong to the thread that moved the state to kPreparing or
  // kRunning, until it moves the state on.
  enum class State { kWaiting, kPreparing, kPrepared, kRunning };
  State state = State::kWaiting;
  Clock::time_point next_renewal;
  Clock::time_point confirmed_until;  // the orchestrator knows that this worker has it; set before others see it
  bool give_back = false;             // it was stopped because the worker drains: another worker may run it
  std::unique_ptr<PreparedTrial> prepared;
  absl::Status fault;  // why it could not be prepared

 private:
  const v1::LeaseTrialResponse leased_;
  const std::string campaign_;
  const StageTimes& times_;
  std::atomic<bool> stopped_ = false;

  mutable absl::Mutex mutex_;
  v1::Progress progress_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::ForeseenVariant> foreseen_ ABSL_GUARDED_BY(mutex_);
  Clock::time_point stage_begin_ ABSL_GUARDED_BY(mutex_) = begin();
};

}  // namespace pawl
