// Promise 12: a sick GPU is taken out after 2 host faults; a candidate's faults never count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "db/store.h"
#include "tests/kernels/bundle_folder.h"
#include "tests/orchestrator/running_service.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"
#include "tests/promises/soak.h"
#include "worker/process/subprocess.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

TEST(SickWorkerTest, GetsNoTrialsAfterTwoFaultsOfItsGpuUntilItRegistersAnew) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "CUDA_ERROR_ECC_UNCORRECTABLE (214)", /*gpu=*/true).ok());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_IDLE);
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "no disk", /*gpu=*/false).ok());
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok()) << "a success in between heals nothing";
  world.Restart();
  EXPECT_EQ(worker.Shown().host_faults(), 1) << "nor does a restart of the orchestrator";
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "CUDA_ERROR_UNKNOWN (999)", /*gpu=*/true).ok());

  EXPECT_EQ(worker.Shown(/*gone_too=*/false).state(), v1::WORKER_STATE_SICK);
  ExpectError(worker.Lease().status(), absl::StatusCode::kFailedPrecondition, "failed twice");
  ASSERT_TRUE(worker.Register().ok());
  ExpectError(worker.Lease().status(), absl::StatusCode::kFailedPrecondition, "failed twice");
  world.Restart();
  ExpectError(worker.Lease().status(), absl::StatusCode::kFailedPrecondition, "failed twice");
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("no worker")) << "a sick one is none";
  ASSERT_TRUE(worker.Drain(/*gone=*/true).ok());
  world.Pass(absl::Hours(1));
  EXPECT_EQ(worker.Shown(/*gone_too=*/false).state(), v1::WORKER_STATE_SICK) << "who looks for it finds it";

  ScriptedWorker anew(world, "a", MadeDevice(), "another");
  EXPECT_EQ(anew.Shown().state(), v1::WORKER_STATE_IDLE);
  EXPECT_EQ(anew.Shown().host_faults(), 0);
  EXPECT_GT(anew.RunAll(), 0);
}

TEST(SickWorkerTest, LeavesItsNameToAnotherProcessAtOnce) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "lost", /*gpu=*/true).ok());
  EXPECT_EQ(ScriptedWorker(world, "a", MadeDevice(), "another").Shown().state(), v1::WORKER_STATE_IDLE);
}

// What a candidate does to itself, in all the ways that the driver tells of.
TEST(SickWorkerTest, IsNotMadeByCandidates) {
  World world;
  ScriptedWorker worker(world, "a");
  int faults = 0;
  while (faults < SoakCount(200, 2000)) {
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(5);
    world.Submit(spec);
    faults += worker.RunAll([&](const v1::Trial& trial) {
      return trial.has_parent() ? FailedCheck(v1::CHECK_FAULT, "CUDA_ERROR_ILLEGAL_ADDRESS (700)") : MeasuredStart(100);
    });
  }
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_IDLE);
  EXPECT_EQ(worker.Shown().host_faults(), 0);
  ReportPromise(12, absl::StrCat(faults, " trials, four of five with a candidate's fault, held against no worker"));
}

// The whole way: the driver's result, the runner's reply, the worker, the orchestrator, the command line.
TEST(SickGpuTest, IsTakenOutAfterTwoInjectedCodes) {
  RunningService service;
  Client client(service.server().address());
  std::unique_ptr<Daemon> worker = FakeGpuWorker(service.server().address(), "gpu-0");
  std::string codes;
  int injected = 0;
  const std::vector<int> candidates = FullSoak() ? std::vector<int>{1,   2,   200, 209, 218, 500, 700, 701, 702,
                                                                    714, 715, 716, 717, 718, 719, 720, 721, 724}
                                                 : std::vector<int>{2, 700, 702, 716, 719};
  for (const int code : candidates) {
    const std::string campaign = client.Submit(FakeGpuBundle(absl::StrCat("//! cuda ", code, "\n")));
    ASSERT_TRUE(Client::Until(std::chrono::seconds(20), [&] { return client.Get(campaign).has_end_time(); }))
        << worker->Output();
    EXPECT_EQ(client.Get(campaign).state(), v1::FAILED) << "the start variant is wrong";
    ++injected;
  }
  EXPECT_EQ(client.FindWorker("workers/gpu-0").host_faults(), 0);
  EXPECT_EQ(client.FindWorker("workers/gpu-0").completed(), injected);

  for (const int code : FullSoak() ? std::vector<int>{46, 100, 101, 214, 220, 999} : std::vector<int>{214}) {
    SCOPED_TRACE(code);
    const std::string campaign = client.Submit(FakeGpuBundle(absl::StrCat("//! cuda ", code, "\n")));
    EXPECT_EQ(worker->WaitForEnd(std::chrono::seconds(20)), 1) << worker->Output();
    EXPECT_THAT(worker->Output(), HasSubstr("take it out of service"));
    const v1::Worker sick = client.FindWorker("workers/gpu-0");
    EXPECT_EQ(sick.state(), v1::WORKER_STATE_SICK);
    EXPECT_EQ(sick.host_faults(), 2) << "exactly";
    ProcessOptions workers;
    workers.argv = {std::string(std::getenv("PAWL_BIN_DIR")) + "/pawl", "workers", "--orchestrator",
                    service.server().address()};
    EXPECT_THAT(RunProcess(workers)->out, HasSubstr("sick"));
    client.Cancel(campaign);
    // The operator has had a look, and starts it again.
    worker = FakeGpuWorker(service.server().address(), "gpu-0");
    EXPECT_TRUE(Client::Until(std::chrono::seconds(20),
                              [&] { return client.FindWorker("workers/gpu-0").state() == v1::WORKER_STATE_IDLE; }));
    absl::StrAppend(&codes, codes.empty() ? "" : ", ", code);
  }
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(1);
  const std::string next = client.Submit(FakeGpuBundle(""), spec);
  EXPECT_TRUE(Client::Until(std::chrono::seconds(20), [&] { return client.Get(next).has_end_time(); }));
  ReportPromise(12, absl::StrCat("real worker, ", injected, " codes of candidates: none counted; each of ", codes,
                                 " twice: taken out"));
}

// The campaign pauses itself at the third fault, two of them of the worker that was taken out and one of the next.
TEST(SickGpuTest, EndsARunWhoseCampaignPausesItself) {
  const BundleFolder bundle;
  bundle.Replace("compiler = \"nvrtc\"", "compiler = \"nvcc\"");
  std::string source;
  std::getline(std::ifstream(bundle.path() / "scale_rows.cu"), source, '\0');
  bundle.Write("scale_rows.cu", "//! cuda 999\n" + source);
  const TemporaryFolder folder("pawl-paused-");
  ProcessOptions run;
  run.argv = {std::string(std::getenv("PAWL_BIN_DIR")) + "/pawl",
              "run",
              bundle.path().string(),
              "--device",
              "cuda:0",
              "--allow-unsandboxed",
              "--database",
              (folder.path() / "pawl.db").string()};
  run.env = FakeGpuEnvironment();
  run.timeout = absl::Seconds(60);
  const absl::StatusOr<ProcessResult> result = RunProcess(run);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 5) << result->err;
  EXPECT_THAT(result->err, HasSubstr("campaigns/1 paused itself: trial"));
  EXPECT_THAT(result->err, HasSubstr("pawl resume 1"));
  const auto store = Store::Open({.file = folder.path() / "pawl.db"}).value();
  EXPECT_EQ(store->GetCampaign(1).value()->state(), v1::PAUSED);
}

}  // namespace
}  // namespace pawl
