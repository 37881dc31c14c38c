// Daemons that die between two durable steps, where a test tells them to (faults/fault_point.h). Those of the
// orchestrator are kill_test's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/orchestrator/running_service.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

TEST(FaultPointTest, OfAWorkerCostsAnAttemptAndNothingElse) {
  OrchestratorOptions options;
  options.lease = absl::Seconds(1);
  options.renew = absl::Milliseconds(300);
  RunningService service(options);
  Client client(service.server().address());
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(3);
  int deaths = 0;
  for (const char* point : {"after-lease", "mid-upload"}) {
    for (int nth = 1; nth <= SoakCount(1, 3); ++nth) {
      SCOPED_TRACE(absl::StrCat(point, ":", nth));
      const std::string campaign = client.Submit(FakeGpuBundle(absl::StrCat("// ", point, nth, "\n")), spec);
      const auto dies = FakeGpuWorker(service.server().address(), absl::StrCat("dies-", deaths),
                                      {{"PAWL_FAULT", absl::StrCat(point, ":", nth)}});
      EXPECT_EQ(dies->WaitForEnd(std::chrono::seconds(30)), -2) << dies->Output();
      EXPECT_THAT(dies->Output(), HasSubstr("FOR TESTS ONLY"));
      EXPECT_FALSE(client.Get(campaign).has_end_time());
      const auto lives = FakeGpuWorker(service.server().address(), absl::StrCat("lives-", deaths));
      EXPECT_TRUE(Client::Until(std::chrono::seconds(30), [&] { return client.Get(campaign).has_end_time(); }))
          << lives->Output();
      const v1::Campaign ended = client.Get(campaign);
      EXPECT_EQ(ended.state(), v1::FINISHED) << ended.message();
      EXPECT_EQ(ended.counts().tried(), 3) << "each counted once";
      EXPECT_EQ(ended.counts().rejected(), 0);
      ++deaths;
    }
  }
  ReportPromise(0, absl::StrCat("fault points of the worker: ", deaths, " deaths, every campaign finished"));
}

TEST(FaultPointTest, MustBeOneThatThereIs) {
  const std::vector<std::string> nowhere = {"--listen", "unix:/no/where", "--database", "/no/where.db"};
  for (const char* wrong : {"before-comit", "after-commit:0", "after-commit:x"}) {
    Daemon orchestrator("pawl-orchestrator", nowhere, {{"PAWL_FAULT", wrong}});
    EXPECT_EQ(orchestrator.WaitForEnd(std::chrono::seconds(10)), 2);
    EXPECT_THAT(orchestrator.Output(), HasSubstr("is not a fault point; expected one of before-commit, after-commit"));
    Daemon worker("pawl-worker", {"--orchestrator", "unix:/no/where", "--device", "replay"}, {{"PAWL_FAULT", wrong}});
    EXPECT_EQ(worker.WaitForEnd(std::chrono::seconds(10)), 2);
  }
}

}  // namespace
}  // namespace pawl
