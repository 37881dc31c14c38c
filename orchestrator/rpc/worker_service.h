#pragma once

#include "orchestrator/core/history.h"
#include "orchestrator/core/orchestrator.h"
#include "pawl/v1/worker_service.grpc.pb.h"

namespace pawl {

// Forwards to the orchestrator.
class WorkerService final : public v1::WorkerService::CallbackService {
 public:
  WorkerService(Orchestrator& orchestrator, const History& history) : orchestrator_(orchestrator), history_(history) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  Reactor* RegisterWorker(Context*, const v1::RegisterWorkerRequest*, v1::RegisterWorkerResponse*) override;
  Reactor* LeaseTrial(Context*, const v1::LeaseTrialRequest*, v1::LeaseTrialResponse*) override;
  Reactor* RenewLease(Context*, const v1::RenewLeaseRequest*, v1::RenewLeaseResponse*) override;
  Reactor* CompleteTrial(Context*, const v1::CompleteTrialRequest*, v1::CompleteTrialResponse*) override;
  Reactor* PutBlob(Context*, const v1::PutBlobRequest*, v1::PutBlobResponse*) override;
  Reactor* GetBundle(Context*, const v1::GetBundleRequest*, v1::Bundle*) override;
  Reactor* DrainWorker(Context*, const v1::DrainWorkerRequest*, v1::DrainWorkerResponse*) override;

 private:
  Orchestrator& orchestrator_;
  const History& history_;
};

}  // namespace pawl
