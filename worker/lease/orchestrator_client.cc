#include <grpcpp/grpcpp.h>

#include <chrono>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/worker_service.grpc.pb.h"
#include "worker/lease/worker_client.h"

namespace pawl {
namespace {

constexpr std::chrono::seconds kCallDeadline{10};
constexpr std::chrono::seconds kRenewDeadline{5};  // another try must fit into the lease
constexpr std::chrono::seconds kLeaveDeadline{1};  // a program that ends does not wait for long
constexpr std::chrono::seconds kLeaseExtra{5};     // beyond what the orchestrator was asked to wait
// A connection is given so long to be made before a call on it is tried. The call after that finds it, if it took
// longer.
constexpr std::chrono::milliseconds kConnecting{200};

// Every refusal of the orchestrator's own has a detail. gRPC, or an orchestrator without memory, says
// RESOURCE_EXHAUSTED without one: that passes, unless the message itself is too large.
bool IsOutOfMemory(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED && status.error_details().empty() &&
         !absl::StrContains(status.error_message(), "larger than max");
}

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (IsOutOfMemory(status)) return absl::UnavailableError(status.error_message());
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

class OrchestratorClient : public WorkerClient {
 public:
  explicit OrchestratorClient(const std::shared_ptr<grpc::Channel>& channel)
      : channel_(channel), stub_(v1::WorkerService::NewStub(channel)) {}

  absl::StatusOr<v1::RegisterWorkerResponse> Register(const v1::RegisterWorkerRequest& request) override {
    return Call(&v1::WorkerService::Stub::RegisterWorker, request, kCallDeadline);
  }

  absl::StatusOr<v1::LeaseTrialResponse> Lease(const v1::LeaseTrialRequest& request) override {
    grpc::ClientContext context;
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return absl::CancelledError("no more trials are leased");
      leasing_ = &context;
    }
    Connect();
    const auto wait = std::chrono::milliseconds(static_cast<int64_t>(1000 * request.wait_seconds()));
    context.set_deadline(std::chrono::system_clock::now() + wait + kLeaseExtra);
    v1::LeaseTrialResponse response;
    const grpc::Status status = stub_->LeaseTrial(&context, request, &response);
    absl::MutexLock lock(&mutex_);
    leasing_ = nullptr;
    if (!status.ok()) return ToStatus(status);
    return response;
  }

  absl::StatusOr<v1::RenewLeaseResponse> Renew(const v1::RenewLeaseRequest& request) override {
    return Call(&v1::WorkerService::Stub::RenewLease, request, kRenewDeadline);
  }

  absl::StatusOr<v1::CompleteTrialResponse> Complete(const v1::CompleteTrialRequest& request) override {
    return Call(&v1::WorkerService::Stub::CompleteTrial, request, kCallDeadline);
  }

  absl::Status PutBlob(const v1::PutBlobRequest& request) override {
    return Call(&v1::WorkerService::Stub::PutBlob, request, kCallDeadline).status();
  }

  absl::StatusOr<v1::Bundle> GetBundle(const std::string& hash) override {
    v1::GetBundleRequest request;
    request.set_hash(hash);
    return Call(&v1::WorkerService::Stub::GetBundle, request, kCallDeadline);
  }

  absl::Status Drain(const v1::DrainWorkerRequest& request) override {
    return Call(&v1::WorkerService::Stub::DrainWorker, request, kLeaveDeadline).status();
  }

  void StopLeasing() override {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
    if (leasing_ != nullptr) leasing_->TryCancel();
  }

 private:
  // A channel that could not connect fails every call until its own pause is over, which grows: an orchestrator that
  // starts a moment after its worker would be found seconds later. The pace of trying again is the caller's.
  void Connect() {
    if (channel_->GetState(/*try_to_connect=*/true) == GRPC_CHANNEL_READY) return;
    grpc::experimental::ChannelResetConnectionBackoff(channel_.get());
    channel_->WaitForConnected(std::chrono::system_clock::now() + kConnecting);
  }

  template <typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (v1::WorkerService::Stub::*method)(grpc::ClientContext*, const Request&,
                                                                                Response*),
                                const Request& request, std::chrono::seconds deadline) {
    Connect();
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + deadline);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) return ToStatus(status);
    return response;
  }

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  absl::Mutex mutex_;
  grpc::ClientContext* leasing_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerClient>> ConnectToOrchestrator(const std::string& address,
                                                                    const Credentials& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxRpcBytes);
  arguments.SetMaxSendMessageSize(kMaxRpcBytes);
  // The loop has its own pace of trying again; the channel's must not be slower.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 10'000);  // for one that is slow to answer, or far away
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 2000);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = OpenChannel(address, credentials, arguments);
  if (!channel.ok()) return channel.status();
  return std::make_unique<OrchestratorClient>(*channel);
}

}  // namespace pawl
