#include "orchestrator/rpc/worker_service.h"

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "orchestrator/core/grpc_status.h"

namespace pawl {
namespace {

using Reactor = grpc::ServerUnaryReactor;
using Context = grpc::CallbackServerContext;

// A long poll: no thread waits, the orchestrator answers when there is something. Shared between gRPC, which may cancel
// it, and the orchestrator's answer.
class LeaseCall final : public Reactor {
 public:
  static Reactor* Start(Orchestrator& orchestrator, const v1::LeaseTrialRequest& request,
                        v1::LeaseTrialResponse* reply) {
    auto call = std::make_shared<LeaseCall>(orchestrator, reply);
    call->self_ = call;
    Reactor* reactor = call.get();
    const uint64_t waiting = orchestrator.Lease(
        request, [call](absl::StatusOr<v1::LeaseTrialResponse> answer) { call->End(std::move(answer)); });
    call->Note(waiting);
    return reactor;
  }

  LeaseCall(Orchestrator& orchestrator, v1::LeaseTrialResponse* reply) : orchestrator_(orchestrator), reply_(reply) {}

  void OnCancel() override {
    uint64_t waiting;
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      waiting = waiting_;
    }
    Abandon(waiting);
  }

  void OnDone() override { const std::shared_ptr<LeaseCall> last = std::move(self_); }

 private:
  void Note(uint64_t waiting) {
    bool cancelled;
    {
      absl::MutexLock lock(&mutex_);
      waiting_ = waiting;
      cancelled = cancelled_;
    }
    if (cancelled) Abandon(waiting);
  }

  void Abandon(uint64_t waiting) {
    if (waiting == 0) return;
    orchestrator_.Forget(waiting);
    End(absl::CancelledError("the worker disconnected"));
  }

  void End(absl::StatusOr<v1::LeaseTrialResponse> answer) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      ended_ = true;
    }
    if (answer.ok()) *reply_ = *std::move(answer);
    Finish(ToGrpc(answer.status()));
  }

  Orchestrator& orchestrator_;
  v1::LeaseTrialResponse* const reply_;
  std::shared_ptr<LeaseCall> self_;  // until OnDone
  absl::Mutex mutex_;
  uint64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

Reactor* WorkerService::RegisterWorker(Context* context, const v1::RegisterWorkerRequest* request,
                                       v1::RegisterWorkerResponse* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  return Answer(context, orchestrator_.Register(*request), reply);
}

Reactor* WorkerService::LeaseTrial(Context*, const v1::LeaseTrialRequest* request, v1::LeaseTrialResponse* reply) {
  return LeaseCall::Start(orchestrator_, *request, reply);
}

Reactor* WorkerService::RenewLease(Context* context, const v1::RenewLeaseRequest* request,
                                   v1::RenewLeaseResponse* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  return Answer(context, orchestrator_.Renew(*request), reply);
}

Reactor* WorkerService::CompleteTrial(Context* context, const v1::CompleteTrialRequest* request,
                                      v1::CompleteTrialResponse* reply) {
  if (absl::Status status = CheckFinite(*request); !status.ok()) return Refuse(context, status);
  Reactor* reactor = context->DefaultReactor();
  orchestrator_.Complete(*request, [reactor, reply](absl::StatusOr<v1::CompleteTrialResponse> answer) {
    if (answer.ok()) *reply = *std::move(answer);
    reactor->Finish(ToGrpc(answer.status()));
  });
  return reactor;
}

Reactor* WorkerService::PutBlob(Context* context, const v1::PutBlobRequest* request, v1::PutBlobResponse* reply) {
  return Answer(context, orchestrator_.PutBlob(*request), reply);
}

Reactor* WorkerService::GetBundle(Context* context, const v1::GetBundleRequest* request, v1::Bundle* reply) {
  return Answer(context, history_.GetBundle(*request), reply);
}

Reactor* WorkerService::DrainWorker(Context* context, const v1::DrainWorkerRequest* request,
                                    v1::DrainWorkerResponse* reply) {
  return Answer(context, orchestrator_.Drain(*request), reply);
}

}  // namespace pawl
