#pragma once

#include <functional>
#include <string>

#include "orchestrator/core/orchestrator.h"
#include "pawl/v1/worker_service.pb.h"
#include "tests/orchestrator/world.h"

namespace pawl {

v1::Device MadeDevice(const std::string& label = "NVIDIA H200", v1::DeviceKind kind = v1::DEVICE_KIND_CUDA);

using Measure = std::function<v1::TrialResult(const v1::Trial&)>;
// The start takes 100 us; no change helps.
v1::TrialResult NothingHelps(const v1::Trial& trial);
// Every change makes it a tenth faster, and all of them together twice as fast.
v1::TrialResult EverythingHelps(const v1::Trial& trial);

// A worker that does as it is told, in the orchestrator's process.
class ScriptedWorker {
 public:
  // Registers; the test fails where that is refused. The world must outlive it.
  ScriptedWorker(World& world, const std::string& name, const v1::Device& device = MadeDevice(),
                 const std::string& instance = "one");

  const std::string& name() const { return name_; }
  absl::Status Register();
  // Without waiting.
  absl::StatusOr<v1::LeaseTrialResponse> Lease();
  // The same where there must be a trial.
  v1::LeaseTrialResponse MustLease();
  // Waits; what came of it, to be called whenever it does.
  uint64_t Wait(double seconds, Orchestrator::LeaseAnswer answer);
  absl::StatusOr<v1::RenewLeaseResponse> Renew(const std::string& lease);
  absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::LeaseTrialResponse& leased,
                                                     const Measure& measure = NothingHelps, bool lease_next = false);
  absl::Status HostFault(const std::string& lease, const std::string& message, bool gpu = false);
  absl::Status GiveBack(const std::string& lease);
  absl::Status Drain(bool gone);

  // Leases and completes until there is nothing left; how many trials.
  int RunAll(const Measure& measure = NothingHelps);
  // As far as ListWorkers shows it.
  v1::Worker Shown(bool gone_too = true);

 private:
  absl::StatusOr<v1::CompleteTrialResponse> Send(v1::CompleteTrialRequest request, const std::string& lease);

  World& world_;
  const std::string name_;
  const v1::Device device_;
  const std::string instance_;
};

}  // namespace pawl
