#include "worker/lease/worker_name.h"

#include <gtest/gtest.h>

#include <map>

namespace pawl {
namespace {

std::string NameIn(const std::map<std::string, std::string>& variables, const std::string& host = "gpu-host") {
  const auto environment = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  return DefaultWorkerName(environment, host, "cuda0");
}

TEST(WorkerNameTest, IsOfTheHostWhereNothingElseStartedIt) {
  EXPECT_EQ(NameIn({}), "gpu-host-cuda0");
  EXPECT_EQ(NameIn({}, "höst name"), "h--st-name-cuda0");
}

TEST(WorkerNameTest, IsOfTheSlurmJobAndItsNode) {
  EXPECT_EQ(NameIn({{"SLURM_JOB_ID", "4711"}, {"SLURMD_NODENAME", "node1"}}), "slurm-4711-node1-cuda0");
  EXPECT_EQ(NameIn({{"SLURM_JOB_ID", "4711"}}), "slurm-4711-gpu-host-cuda0");
}

TEST(WorkerNameTest, TellsARequeuedJobAndTasksApart) {
  EXPECT_EQ(NameIn({{"SLURM_JOB_ID", "4711"}, {"SLURMD_NODENAME", "node1"}, {"SLURM_RESTART_COUNT", "2"}}),
            "slurm-4711-node1-r2-cuda0");
  EXPECT_EQ(
      NameIn({{"SLURM_JOB_ID", "4711"}, {"SLURMD_NODENAME", "node1"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}),
      "slurm-4711-node1-t0-cuda0");
}

TEST(WorkerNameTest, KeepsTheEndOfAPodsName) {
  EXPECT_EQ(NameIn({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}}, "pawl-worker-x7f2p"), "pod-pawl-worker-x7f2p-cuda0");
  const std::string name =
      NameIn({{"KUBERNETES_SERVICE_HOST", "10.0.0.1"}, {"POD_NAME", std::string(80, 'a') + "-x7f2p"}});
  EXPECT_LE(name.size(), 64u);
  EXPECT_NE(name.find("-x7f2p-cuda0"), std::string::npos) << name;
}

TEST(WorkerNameTest, FitsWhateverTheNodeIsCalled) {
  const std::string name = NameIn({{"SLURM_JOB_ID", "123456789012"},
                                   {"SLURMD_NODENAME", std::string(200, 'n')},
                                   {"SLURM_RESTART_COUNT", "10"},
                                   {"SLURM_NTASKS", "400"},
                                   {"SLURM_PROCID", "399"}});
  EXPECT_LE(name.size(), 64u) << name;
}

}  // namespace
}  // namespace pawl
