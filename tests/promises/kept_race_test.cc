// compute-sanitizer runs after variants were kept: what it finds takes them back, from the worker to the stored rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/orchestrator/running_service.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr char kKernel[] = "extern \"C\" __global__ void copy(const float* in, float* out, int n) {}";

class KeptRaceTest : public testing::Test {
 protected:
  KeptRaceTest() {
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(2);
    spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
    spec.mutable_chooser()->set_wait_seconds(600);
    campaign_ = client_.Submit(FakeGpuBundle(""), spec);
    worker_ = FakeGpuWorker(service_.server().address(), "gpu-0");
  }

  v1::ListIterationsResponse History() {
    v1::ListIterationsRequest request;
    request.set_campaign(campaign_);
    return Client::Ask<Client::Campaigns, v1::ListIterationsRequest, v1::ListIterationsResponse>(
        client_.campaigns(), &Client::Campaigns::ListIterations, request);
  }
  bool Until(const std::function<bool(const v1::ListIterationsResponse&)>& holds) {
    return Client::Until(std::chrono::seconds(60), [&] { return holds(History()); });
  }
  // An edit; the kernel's own line comes after these of the patch.
  void Propose(const std::string& name, const std::string& patch) {
    v1::ProposeChangeRequest request;
    request.set_campaign(campaign_);
    request.set_author("ann");
    request.mutable_change()->mutable_source()->set_name(name);
    request.mutable_change()->mutable_source()->set_patch(absl::StrCat(patch, " ", kKernel, "\n"));
    Client::Ask<Client::Campaigns, v1::ProposeChangeRequest, v1::ProposeChangeResponse>(
        client_.campaigns(), &Client::Campaigns::ProposeChange, request);
  }

  RunningService service_;
  Client client_{service_.server().address()};
  std::string campaign_;
  std::unique_ptr<Daemon> worker_;
};

TEST_F(KeptRaceTest, IsTakenBackBeforeTheCampaignEnds) {
  ASSERT_TRUE(Until([](const auto& history) { return history.iterations_size() == 1; })) << worker_->Output();
  Propose("right", "@@ -1,1 +1,2 @@\n+#pragma fake time 80\n");
  ASSERT_TRUE(Until([](const auto& history) {
    return history.iterations_size() == 2 && history.iterations(1).verdict() == v1::KEPT &&
           !history.iterations(1).unsanitized();
  })) << worker_->Output();
  Propose("racy", "@@ -1,2 +1,3 @@\n-#pragma fake time 80\n+#pragma fake time 60\n+#pragma fake race\n");
  ASSERT_TRUE(Client::Until(std::chrono::seconds(60), [&] { return client_.Get(campaign_).has_end_time(); }))
      << worker_->Output();
  const v1::Iteration racy = History().iterations(2);
  EXPECT_EQ(racy.comparison(), v1::FASTER);
  EXPECT_EQ(racy.verdict(), v1::REJECTED);
  EXPECT_EQ(racy.failure().check(), v1::CHECK_RACECHECK);
  EXPECT_THAT(racy.reason(), HasSubstr("Race reported between"));
  EXPECT_EQ(client_.Get(campaign_).best(), 1);
}

}  // namespace
}  // namespace pawl
