// Promise 10: a full queue says so, and costs no memory.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pawl/v1/error.pb.h"
#include "tests/instrumented.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

TEST(FullQueueTest, RefusesWithAHintAndLittleMemory) {
  const int submissions = SoakCount(400, 10'000), most = SoakCount(100, 1'000);
  const TemporaryFolder folder("pawl-queue-");
  const std::string address = "unix:" + (folder.path() / "socket").string();
  const std::vector<std::string> arguments = {
      "--listen",         address,       "--database", (folder.path() / "pawl.db").string(), "--max-campaigns",
      absl::StrCat(most), "--log-level", "error"};
  auto orchestrator = std::make_unique<Daemon>("pawl-orchestrator", arguments);
  Client client(address);
  // The largest bundle that ships.
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = ShippedBundle("attention");
  int taken = 0, refused = 0;
  for (int i = 0; i < submissions; ++i) {
    request.set_request_id(absl::StrCat("request ", i));
    v1::Campaign campaign;
    const grpc::Status status =
        Client::Call(client.campaigns(), &Client::Campaigns::SubmitCampaign, request, &campaign);
    if (status.ok()) {
      ++taken;
      continue;
    }
    ++refused;
    ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    v1::ErrorDetail detail;
    ASSERT_TRUE(detail.ParseFromString(status.error_details()));
    ASSERT_GT(detail.retry_after_seconds(), 0);
    ASSERT_NE(detail.fix(), "");
  }
  EXPECT_EQ(taken, most);
  EXPECT_EQ(refused, submissions - most);
  const double megabytes = PeakMegabytes(orchestrator->pid());
  EXPECT_GT(megabytes, 0);
  EXPECT_LT(megabytes, 200 * kMemoryUse);
  orchestrator = nullptr;
  orchestrator = std::make_unique<Daemon>("pawl-orchestrator", arguments);
  ASSERT_TRUE(orchestrator->Says("listening on")) << orchestrator->Output();
  const double again = PeakMegabytes(orchestrator->pid());
  EXPECT_LT(again, 200 * kMemoryUse) << "also when all of them are read again";
  v1::GetCampaignRequest get;
  get.set_name("campaigns/1");
  EXPECT_TRUE(Client::Until(std::chrono::seconds(20), [&] {
    v1::Campaign campaign;
    return Client::Call(client.campaigns(), &Client::Campaigns::GetCampaign, get, &campaign).ok();
  }));
  client.Cancel("campaigns/1");
  v1::Campaign campaign;
  request.set_request_id("one more");
  EXPECT_TRUE(Client::Call(client.campaigns(), &Client::Campaigns::SubmitCampaign, request, &campaign).ok())
      << "there is room again";
  ReportPromise(10,
                absl::StrFormat("%d submissions: %d taken, %d refused with RESOURCE_EXHAUSTED and a retry hint; peak "
                                "memory %.0f MB",
                                submissions, taken, refused, megabytes));
}

}  // namespace
}  // namespace pawl
