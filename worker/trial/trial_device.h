#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/campaign.pb.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Who is told how a trial gets on. Thread-safe.
class TrialObserver {
 public:
  virtual ~TrialObserver() = default;

  // Step `step` of `steps`, counted over the whole trial, begins.
  virtual void Report(v1::Stage stage, int step, int steps, const std::string& text) = 0;

  // The result is no longer wanted. Checked between steps: the trial then ends with CANCELLED.
  virtual bool stopped() const = 0;

  // When the trial was leased: the times in its result count from here.
  std::chrono::steady_clock::time_point begin() const { return begin_; }
  double seconds() const { return SecondsAt(std::chrono::steady_clock::now()); }
  double SecondsAt(std::chrono::steady_clock::time_point at) const {
    return std::chrono::duration<double>(at - begin_).count();
  }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Something to be stored beside a result.
struct Artifact {
  v1::Blob::Kind kind;
  std::string content;
};

struct TrialOutcome {
  v1::TrialResult result;
  std::vector<Artifact> artifacts;  // not yet in result.blobs
  // With the parent, where there is one. An orchestrator makes its own of the samples.
  v1::Comparison comparison;
};

// A trial that is ready for the GPU; only the device that made it knows what is in it.
class PreparedTrial {
 public:
  virtual ~PreparedTrial() = default;
};

// What a worker measures on: a GPU, or a recording of one. A candidate's failure is in the result; an error status is
// the machine's fault (worker/process/host_fault.h), or CANCELLED when the observer said stop.
class TrialDevice {
 public:
  virtual ~TrialDevice() = default;

  virtual const v1::Device& device() const = 0;

  // What needs no GPU: static check and build. Thread-safe. Processes it starts end with the calling thread, so that
  // should live as long as the device.
  virtual absl::StatusOr<std::unique_ptr<PreparedTrial>> Prepare(const v1::Trial& trial,
                                                                 std::shared_ptr<const v1::Bundle> bundle,
                                                                 TrialObserver& observer) = 0;

  // What may follow this trial, so that it can be built in the background. Thread-safe; returns at once.
  virtual void Expect(const v1::Trial& /*trial*/, std::shared_ptr<const v1::Bundle> /*bundle*/,
                      const std::vector<v1::ForeseenVariant>& /*foreseen*/) {}

  // The rest. One at a time, and always from the same thread.
  virtual absl::StatusOr<TrialOutcome> Run(PreparedTrial& prepared, TrialObserver& observer) = 0;
};

}  // namespace pawl
