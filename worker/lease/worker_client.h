#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/channel/channel.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/worker_service.pb.h"

namespace pawl {

// What a worker asks of its orchestrator: WorkerService, each call with a deadline of its own. The codes are those of
// worker_service.proto; UNAVAILABLE and DEADLINE_EXCEEDED mean that nobody knows whether the call arrived. Thread-safe.
class WorkerClient {
 public:
  virtual ~WorkerClient() = default;

  virtual absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request) = 0;
  virtual absl::StatusOr<v1::LeaseTrialResponse> Lease(const v1::LeaseTrialRequest& request) = 0;
  virtual absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request) = 0;
  virtual absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::CompleteTrialRequest& request) = 0;
  virtual absl::Status PutBlob(const v1::PutBlobRequest& request) = 0;
  virtual absl::StatusOr<v1::Bundle> GetBundle(const std::string& hash) = 0;
  virtual absl::Status Drain(const v1::DrainWorkerRequest& request) = 0;

  // Ends a Lease that waits; later ones answer CANCELLED at once.
  virtual void StopLeasing() = 0;
};

// A client over gRPC. Connects when it is first used. Addresses are host:port or unix:/path. INVALID_ARGUMENT: another
// machine's address without TLS, or credentials that can't be read.
absl::StatusOr<std::unique_ptr<WorkerClient>> ConnectToOrchestrator(const std::string& address,
                                                                    const Credentials& credentials = {});

}  // namespace pawl
