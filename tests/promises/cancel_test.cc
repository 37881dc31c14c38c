// Promise 9: a cancelled campaign leaves no process behind, whatever ran for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "tests/orchestrator/running_service.h"
#include "tests/promises/client.h"
#include "tests/promises/fake_gpu_worker.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

// What hangs here has a child that sleeps for so long, or is called so.
bool Hangs(const std::vector<ProcessId>& processes) {
  return std::any_of(processes.begin(), processes.end(), [](const ProcessId& process) {
    std::ifstream comm(absl::StrCat("/proc/", process.pid, "/comm"));
    std::string name;
    std::getline(comm, name);
    return name == "pawl-hangs" || absl::StrContains(process.command, "sleep 86399");
  });
}

// A worker keeps compilers warm for the next task, and before the first trial runs also a runner.
bool IsWarm(const ProcessId& process, bool building) {
  return absl::StrContains(process.command, "pawl-builder") ||
         (building && absl::StrContains(process.command, "pawl-runner"));
}

TEST(CancelTest, LeavesNoProcessBehind) {
  RunningService service;
  Client client(service.server().address());
  absl::Duration latest;
  int cancelled = 0, killed = 0;
  for (int round = 0; round < SoakCount(1, 5); ++round) {
    std::vector<std::string> campaigns;
    std::vector<std::unique_ptr<Daemon>> workers;
    for (const char* hangs : {"hang-nvcc", "hang-call", "hang-ncu", "hang-compute-sanitizer"}) {
      campaigns.push_back(client.Submit(FakeGpuBundle(absl::StrCat("//! ", hangs, "\n"))));
      workers.push_back(FakeGpuWorker(service.server().address(), absl::StrCat(hangs, round)));
    }
    for (const auto& worker : workers) {
      ASSERT_TRUE(Client::Until(std::chrono::seconds(20), [&] { return Hangs(DescendantsOf(worker->pid())); }))
          << worker->Output();
    }
    std::vector<ProcessId> before;
    for (const auto& worker : workers) {
      const std::vector<ProcessId> processes = DescendantsOf(worker->pid());
      const bool building = std::any_of(processes.begin(), processes.end(), [](const ProcessId& process) {
        return absl::StrContains(process.command, "fake_gpu/nvcc -cubin");
      });
      for (const ProcessId& process : processes) {
        if (!IsWarm(process, building)) before.push_back(process);
      }
    }
    ASSERT_GE(before.size(), 4 * 2u);
    for (const std::string& campaign : campaigns) client.Cancel(campaign);
    const absl::Time begin = absl::Now();
    const auto alive = [&] { return std::count_if(before.begin(), before.end(), IsAlive); };
    EXPECT_TRUE(Client::Until(std::chrono::seconds(10), [&] { return alive() == 0; })) << alive() << " are left";
    for (const ProcessId& process : before) EXPECT_FALSE(IsAlive(process)) << process.command;
    latest = std::max(latest, absl::Now() - begin);
    cancelled += static_cast<int>(campaigns.size());
    killed += static_cast<int>(before.size());

    // Those workers go on.
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(1);
    const std::string next = client.Submit(FakeGpuBundle(""), spec);
    EXPECT_TRUE(Client::Until(std::chrono::seconds(20), [&] { return client.Get(next).has_end_time(); }));
    EXPECT_EQ(client.Get(next).state(), v1::FINISHED) << client.Get(next).message();
  }
  ReportPromise(9,
                absl::StrFormat("%d campaigns cancelled in mid-stage; of %d processes the last was gone after %.1f s",
                                cancelled, killed, absl::ToDoubleSeconds(latest)));
}

}  // namespace
}  // namespace pawl
