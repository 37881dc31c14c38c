// Promise 4: an alive but stuck stage ends at its deadline + 2 s. The tools that hang do not listen to TERM, and have
// children that hang too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/running_service.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"
#include "tests/promises/soak.h"
#include "worker/build/builder.h"
#include "worker/device/runner_process.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

constexpr absl::Duration kLate = absl::Seconds(2);
constexpr absl::Duration kDeadline = absl::Seconds(1);

class StuckStageTest : public testing::Test {
 protected:
  // Runs it, and holds it to its deadline.
  template <typename Body>
  void Timed(const Body& body) {
    const absl::Time begin = absl::Now();
    body();
    const absl::Duration late = absl::Now() - begin - kDeadline;
    EXPECT_GT(late, absl::Milliseconds(-20));
    EXPECT_LT(late, kLate);
    latest_ = std::max(latest_, late);
    ++ended_;
  }

  absl::Duration latest_ = -absl::Seconds(9);
  int ended_ = 0;
};

TEST_F(StuckStageTest, EndsAtItsDeadlineWhateverHangs) {
  const auto env = FakeGpuEnvironment();
  BuilderOptions options;
  options.toolkit = Toolkit();
  options.toolkit.nvcc = env.at("PAWL_NVCC");
  options.allow_unsandboxed = true;
  const std::unique_ptr<Builder> builder = Builder::Create(options).value();
  const std::string runner = env.at("PAWL_BIN_DIR") + "/pawl-runner";
  for (int i = 0; i < SoakCount(1, 20); ++i) {
    v1::BuildRequest build;
    build.set_compiler(v1::COMPILER_NVCC);
    build.set_source("//! hang-nvcc\n");
    build.set_name("stuck.cu");
    build.set_architecture("sm_90");
    build.set_deadline_seconds(absl::ToDoubleSeconds(kDeadline));
    Timed([&] {
      const absl::StatusOr<v1::BuildReply> reply = builder->Build(build);
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_EQ(reply->failure().check(), v1::CHECK_TIMEOUT) << reply->failure().message();
    });

    RunnerProcess process({.program = runner, .device = 0, .shared_fd = 0, .support_cubin = ""});
    ASSERT_TRUE(process.Open().ok());
    ASSERT_TRUE(process.Load("stuck", "fake: hang-call", {}).ok());
    v1::RunnerRequest call;
    call.mutable_call()->set_module("stuck");
    Timed([&] {
      const absl::StatusOr<v1::RunnerReply> reply = process.Ask(call, kDeadline);
      ASSERT_TRUE(reply.ok()) << reply.status();
      EXPECT_EQ(reply->failure().check(), v1::CHECK_TIMEOUT) << reply->failure().message();
    });

    for (const char* tool : {"PAWL_NCU", "PAWL_COMPUTE_SANITIZER"}) {
      const TemporaryFolder folder("pawl-stuck-");
      const std::string job = (folder.path() / "job").string();
      std::ofstream(job) << "fake: hang-ncu fake: hang-compute-sanitizer";
      ProcessOptions profile;
      profile.argv = {env.at(tool), "--job", job};
      profile.timeout = kDeadline;
      Timed([&] { EXPECT_TRUE(RunProcess(profile)->timed_out); });
    }
  }
  ReportPromise(4,
                absl::StrFormat("%d hangs of compiler, kernel, ncu and compute-sanitizer with a deadline of 1 s; the "
                                "latest ended %.2f s after it",
                                ended_, absl::ToDoubleSeconds(latest_)));
}

// With the deadlines that trials have: minutes, and so for scripts/soak only.
TEST(StuckTrialTest, EndsWithItsStage) {
  if (!FullSoak()) GTEST_SKIP() << "takes more than a minute: scripts/soak runs it";
  RunningService service;
  Client client(service.server().address());
  struct Stage {
    const char* hangs;
    v1::Stage stage;
    double deadline;  // s: kBuildDeadlineSeconds, kCallDeadline, ncu's for one variant
    std::string campaign;
  };
  Stage stages[] = {{"hang-nvcc", v1::STAGE_BUILD, 60, ""},
                    {"hang-call", v1::STAGE_VALIDATE, 10, ""},
                    {"hang-ncu", v1::STAGE_PROFILE, 65, ""}};
  std::vector<std::unique_ptr<Daemon>> workers;
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(1);
  for (Stage& stage : stages) {
    stage.campaign = client.Submit(FakeGpuBundle(absl::StrCat("//! ", stage.hangs, "\n")), spec);
    workers.push_back(FakeGpuWorker(service.server().address(), stage.hangs));
  }
  std::string did;
  for (const Stage& stage : stages) {
    SCOPED_TRACE(stage.hangs);
    v1::GetIterationRequest request;
    request.set_name(stage.campaign + "/iterations/0");
    v1::Iteration iteration;
    ASSERT_TRUE(Client::Until(std::chrono::seconds(90), [&] {
      return Client::Call(client.campaigns(), &Client::Campaigns::GetIteration, request, &iteration).ok();
    }));
    double seconds = 0;
    for (const v1::StageTime& time : iteration.stages()) {
      if (time.stage() == stage.stage) seconds = time.seconds();
    }
    EXPECT_GT(seconds, stage.deadline - 0.1);
    EXPECT_LT(seconds, stage.deadline + 2 * kSlowdown);
    absl::StrAppendFormat(&did, "%s%s %.2f s (deadline %.0f s)", did.empty() ? "" : ", ", stage.hangs, seconds,
                          stage.deadline);
  }
  ReportPromise(4, "whole trials: " + did);
}

}  // namespace
}  // namespace pawl
