#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "pawl/v1/worker_service.grpc.pb.h"
#include "worker/lease/worker_client.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

// Knows no call: that it says so shows that it was reached.
TEST(OrchestratorClientTest, ReachesAnOrchestratorThatStartedAMomentLaterWithTheNextCall) {
  const TemporaryFolder folder("pawl-client-test-");
  const std::string address = "unix:" + (folder.path() / "socket").string();
  const absl::StatusOr<std::unique_ptr<WorkerClient>> client = ConnectToOrchestrator(address, {});
  ASSERT_TRUE(client.ok()) << client.status();
  // As often as makes a channel's own pause long.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(absl::IsUnavailable((*client)->Register({}).status()));
  }
  v1::WorkerService::Service nothing;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&nothing);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(absl::IsUnimplemented((*client)->Register({}).status()));
}

class Exhausted final : public v1::WorkerService::Service {
 public:
  grpc::Status status;
  grpc::Status RegisterWorker(grpc::ServerContext*, const v1::RegisterWorkerRequest*,
                              v1::RegisterWorkerResponse*) override {
    return status;
  }
};

TEST(OrchestratorClientTest, TakesOnlyTheOrchestratorsOwnRefusalForOne) {
  const TemporaryFolder folder("pawl-client-test-");
  const std::string address = "unix:" + (folder.path() / "socket").string();
  Exhausted service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const absl::StatusOr<std::unique_ptr<WorkerClient>> client = ConnectToOrchestrator(address, {});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto exhausted = grpc::StatusCode::RESOURCE_EXHAUSTED;
  service.status = {exhausted, "a blob has at most 4 MB", "a detail"};
  EXPECT_TRUE(absl::IsResourceExhausted((*client)->Register({}).status()));
  service.status = {exhausted, "SERVER: Received message larger than max (5 vs. 4)"};
  EXPECT_TRUE(absl::IsResourceExhausted((*client)->Register({}).status()));
  service.status = {exhausted, "out of memory"};
  EXPECT_TRUE(absl::IsUnavailable((*client)->Register({}).status())) << "it is tried again";
}

}  // namespace
}  // namespace pawl
