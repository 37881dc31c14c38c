#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <type_traits>

#include "db/store.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/grpcpp.h"
#include "orchestrator/rpc/server.h"
#include "pawl/v1/campaign_service.grpc.pb.h"
#include "pawl/v1/error.pb.h"
#include "pawl/v1/worker_service.grpc.pb.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

// A message in protobuf's text format.
template <typename Message>
Message Made(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// The code, a message that says this, and details with an advice.
void ExpectRefusal(const grpc::Status& status, grpc::StatusCode code, const std::string& part);

// A server on a unix socket, and a client of it.
class RunningService {
 public:
  explicit RunningService(const OrchestratorOptions& options = {});

  Server& server() { return *server_; }
  void Stop() { server_.reset(); }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  v1::CampaignService::Stub& campaigns() { return *campaigns_; }
  v1::WorkerService::Stub& workers() { return *workers_; }

  template <typename Stub, typename Request, typename Reply>
  grpc::Status Call(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
                    const std::type_identity_t<Request>& request, std::type_identity_t<Reply>* reply) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    return (stub.*rpc)(&context, request, reply);
  }
  // Where it must be answered.
  template <typename Stub, typename Request, typename Reply>
  Reply Ask(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
            const std::type_identity_t<Request>& request) {
    Reply reply;
    const grpc::Status status = Call(stub, rpc, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_code() << " " << status.error_message();
    return reply;
  }
  // Where it must be refused.
  template <typename Stub, typename Request, typename Reply>
  void Refuse(Stub& stub, grpc::Status (Stub::*rpc)(grpc::ClientContext*, const Request&, Reply*),
              const std::type_identity_t<Request>& request, grpc::StatusCode code, const std::string& part) {
    Reply reply;
    SCOPED_TRACE(request.GetTypeName() + " " + request.ShortDebugString().substr(0, 200));
    ExpectRefusal(Call(stub, rpc, request, &reply), code, part);
  }

  // What the tests do all the time.
  std::string Submit();
  void Register(const std::string& name);
  v1::LeaseTrialResponse Lease(const std::string& name);
  // A result of this lease, where nothing helps.
  static v1::CompleteTrialRequest Result(const std::string& name, const v1::LeaseTrialResponse& leased);
  // Leases and completes until there is nothing left.
  void RunAll(const std::string& name);

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::CampaignService::Stub> campaigns_;
  std::unique_ptr<v1::WorkerService::Stub> workers_;
};

}  // namespace pawl
