// What a worker on a GPU says of when it did what, from its lease to the stored iteration.
#include <gtest/gtest.h>

#include "tests/orchestrator/running_service.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"

namespace pawl {
namespace {

TEST(StageViewTest, StoresWhenStagesBeganAndWhichVariantsWereBuiltBesideThem) {
  RunningService service;
  Client client(service.server().address());
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(4);
  const std::string campaign = client.Submit(FakeGpuBundle(""), spec);
  const std::unique_ptr<Daemon> worker = FakeGpuWorker(service.server().address(), "gpu-0");
  ASSERT_TRUE(Client::Until(std::chrono::seconds(60), [&] { return client.Get(campaign).has_end_time(); }))
      << worker->Output();
  const v1::Campaign ended = client.Get(campaign);
  EXPECT_GT(ended.gpu_busy(), 0);
  EXPECT_LE(ended.gpu_busy(), 1);

  v1::ListIterationsRequest request;
  request.set_campaign(campaign);
  const auto list = Client::Ask<Client::Campaigns, v1::ListIterationsRequest, v1::ListIterationsResponse>(
      client.campaigns(), &Client::Campaigns::ListIterations, request);
  ASSERT_GT(list.iterations_size(), 2) << worker->Output();
  int ahead = 0, sanitizers = 0;
  for (const v1::Iteration& iteration : list.iterations()) {
    SCOPED_TRACE(iteration.name());
    ASSERT_FALSE(iteration.stages().empty());
    double end = 0;
    for (const v1::StageTime& stage : iteration.stages()) {
      ASSERT_TRUE(stage.has_begin());
      EXPECT_GE(stage.begin(), end - 1e-9);
      end = stage.begin() + stage.seconds();
    }
    for (const v1::BesideTime& beside : iteration.beside()) {
      const bool later = beside.begin() > end;
      if (!later) EXPECT_LE(beside.begin() + beside.seconds(), end + 1);
      sanitizers += beside.kind() == v1::BesideTime::SANITIZER;
      if (beside.kind() != v1::BesideTime::BUILD_AHEAD) continue;
      ++ahead;
      EXPECT_GT(beside.seconds(), 0);
      EXPECT_FALSE(beside.change().variable().empty());
      EXPECT_LE(beside.parent(), iteration.number());
    }
  }
  EXPECT_GT(ahead, 0) << "while a change was measured, others were built";
  EXPECT_GT(sanitizers, 0) << "over the start and what was kept first";
}

}  // namespace
}  // namespace pawl
