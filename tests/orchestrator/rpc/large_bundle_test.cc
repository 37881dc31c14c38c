// A bundle with as much data as the limits allow, from the command line's client through the service to a worker's.
#include <gtest/gtest.h>

#include "base/channel/channel.h"
#include "cli/connect/campaign_client.h"
#include "cli/text/failure.h"
#include "kernels/limits.h"
#include "tests/orchestrator/running_service.h"
#include "worker/lease/worker_client.h"

namespace pawl {
namespace {

// Its input comes from files of so many bytes together.
v1::SubmitCampaignRequest WithData(size_t bytes) {
  v1::SubmitCampaignRequest request;
  v1::Bundle& bundle = *request.mutable_bundle();
  bundle = TinyBundle();
  bundle.mutable_tensors(0)->set_fill(v1::FILL_FILE);
  bundle.mutable_tensors(0)->set_file("in.bin");
  for (const char* path : {"in.bin", "more.bin"}) {
    v1::DataFile& file = *bundle.add_data_files();
    file.set_path(path);
    file.set_data(std::string(bytes / 2, '\0'));
  }
  return request;
}

class LargeBundleTest : public testing::Test {
 protected:
  RunningService service_;
  CampaignClient client_{service_.server().address()};
};

class AllowedBundleTest : public LargeBundleTest, public testing::WithParamInterface<size_t> {};

TEST_P(AllowedBundleTest, IsSubmittedAndReachesAWorker) {
  const v1::SubmitCampaignRequest request = WithData(GetParam());
  const absl::StatusOr<v1::Campaign> campaign = client_.Submit(request);
  ASSERT_TRUE(campaign.ok()) << FailureText(campaign.status());

  const absl::StatusOr<std::unique_ptr<WorkerClient>> worker = ConnectToOrchestrator(service_.server().address());
  ASSERT_TRUE(worker.ok()) << worker.status();
  service_.Register("workers/a");
  v1::LeaseTrialRequest lease;
  lease.set_worker("workers/a");
  lease.set_instance("one");
  const absl::StatusOr<v1::LeaseTrialResponse> leased = (*worker)->Lease(lease);
  ASSERT_TRUE(leased.ok()) << leased.status();
  ASSERT_TRUE(leased->has_trial());
  const absl::StatusOr<v1::Bundle> bundle = (*worker)->GetBundle(leased->trial().bundle_hash());
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  EXPECT_EQ(bundle->SerializeAsString().size(), request.bundle().SerializeAsString().size());
  ASSERT_EQ(bundle->data_files_size(), 2);
  EXPECT_EQ(bundle->data_files(1).data(), request.bundle().data_files(1).data());
}

INSTANTIATE_TEST_SUITE_P(Data, AllowedBundleTest, testing::Values(size_t{12} << 20, kMaxDataBytes));

TEST_F(LargeBundleTest, BeyondTheLimitIsRefusedWithTheLimit) {
  const absl::StatusOr<v1::Campaign> more = client_.Submit(WithData(kMaxDataBytes + 2));
  EXPECT_TRUE(absl::IsInvalidArgument(more.status())) << more.status();
  EXPECT_NE(FailureText(more.status()).find("data files: expected at most"), std::string::npos)
      << FailureText(more.status());
  const absl::StatusOr<v1::Campaign> far_more = client_.Submit(WithData(size_t{kMaxRpcBytes}));
  EXPECT_TRUE(absl::IsResourceExhausted(far_more.status())) << far_more.status();
  EXPECT_NE(FailureText(far_more.status()).find("may have at most 32 MB"), std::string::npos)
      << FailureText(far_more.status());
}

}  // namespace
}  // namespace pawl
