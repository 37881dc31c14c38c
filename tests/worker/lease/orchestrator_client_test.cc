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

}  // namespace
}  // namespace pawl
