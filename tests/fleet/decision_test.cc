#include "fleet/decision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/demand.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using State = FleetJob::State;

FleetJob Job(int64_t id, State state, const std::string& gpu = "") {
  FleetJob job;
  job.id = id;
  job.state = state;
  job.gpu = gpu;
  return job;
}

Demand Queued(const std::string& gpu, int trials) {
  Demand demand;
  demand.queued[gpu] = trials;
  return demand;
}

const std::vector<GpuClass> kAnything = {{}};
const std::vector<GpuClass> kTwo = {{"H200", "gpu:h200:1"}, {"L4", "gpu:l4:1"}};

TEST(FleetDecisionTest, StartsAWorkerForEveryQueuedTrialUpToTheCeiling) {
  EXPECT_THAT(Decide(kAnything, Queued("any", 3), {}, {.ceiling = 10}).submit, ElementsAre(Pair("", 3)));
  EXPECT_THAT(Decide(kAnything, Queued("any", 30), {}, {.ceiling = 10}).submit, ElementsAre(Pair("", 10)));
  EXPECT_THAT(Decide(kAnything, Queued("any", 300), {}, {.ceiling = 200, .at_once = 25}).submit,
              ElementsAre(Pair("", 25)));
  EXPECT_THAT(Decide(kAnything, Queued("any", 0), {}, {.ceiling = 10}).submit, IsEmpty());
}

TEST(FleetDecisionTest, CountsJobsThatAreOnTheirWayAndWorkersThatAreIdle) {
  Demand demand = Queued("NVIDIA H200", 5);
  demand.idle["NVIDIA H200"] = 1;
  demand.workers = {"slurm-1-node-cuda0", "gpu-host-cuda0"};
  const std::vector<FleetJob> jobs = {Job(1, State::kRunning),  // its worker is the busy or the idle one
                                      Job(2, State::kRunning),  // starts
                                      Job(3, State::kPending), Job(4, State::kEnded), Job(5, State::kFailed)};
  const Decision decision = Decide(kAnything, demand, jobs, {.ceiling = 10});
  EXPECT_THAT(decision.submit, ElementsAre(Pair("", 2)));
  EXPECT_EQ(decision.registered, 1);
  EXPECT_EQ(decision.starting, 2);
  EXPECT_THAT(Decide(kAnything, demand, jobs, {.ceiling = 10}, {2}).submit, ElementsAre(Pair("", 3)))
      << "one that never registers does not count for ever";
}

TEST(FleetDecisionTest, DecidesTheSameWheneverItIsAskedUntilJobsAreThere) {
  const Demand demand = Queued("any", 4);
  std::vector<FleetJob> jobs;
  for (int64_t id = 1; id <= Decide(kAnything, demand, {}, {.ceiling = 10}).submit.at(""); ++id) {
    jobs.push_back(Job(id, State::kPending));
  }
  EXPECT_THAT(Decide(kAnything, demand, jobs, {.ceiling = 10}).submit, IsEmpty()) << "a restart doubles nothing";
}

TEST(FleetDecisionTest, GivesEachGpuItsOwnJobs) {
  Demand demand = Queued("NVIDIA H200", 2);
  demand.queued["l4"] = 1;
  demand.queued["B300"] = 7;
  demand.queued["any"] = 1;
  EXPECT_THAT(Decide(kTwo, demand, {Job(1, State::kPending, "L4")}, {.ceiling = 10}).submit,
              ElementsAre(Pair("H200", 3)));
  EXPECT_EQ(ClassFor(kTwo, "B300"), -1);
  EXPECT_EQ(ClassFor(kTwo, "replay of an NVIDIA L4, recorded on 2026-11-15"), 1);
}

TEST(FleetDecisionTest, AnIdleReplayIsNoWorkerForAGpusTrials) {
  const std::string replay = "replay of an NVIDIA H200, recorded on 2026-11-15";
  Demand demand = Queued("NVIDIA H200", 2);
  demand.queued["any"] = 1;
  demand.idle[replay] = 5;
  demand.replays = {replay};
  EXPECT_THAT(Decide(kTwo, demand, {}, {.ceiling = 10}).submit, ElementsAre(Pair("H200", 3)));
  demand.queued[replay] = 4;  // these are its own
  EXPECT_THAT(Decide(kTwo, demand, {}, {.ceiling = 10}).submit, ElementsAre(Pair("H200", 3)));
  demand.idle["NVIDIA H200"] = 1;
  EXPECT_THAT(Decide(kTwo, demand, {}, {.ceiling = 10}).submit, ElementsAre(Pair("H200", 2)));
}

TEST(FleetDecisionTest, KeepsTheFloorAndCancelsOnlyWhatHasNotBegun) {
  EXPECT_THAT(Decide(kAnything, Queued("any", 0), {}, {.floor = 2, .ceiling = 10}).submit, ElementsAre(Pair("", 2)));
  const std::vector<FleetJob> jobs = {Job(1, State::kRunning), Job(2, State::kRunning), Job(3, State::kPending),
                                      Job(4, State::kPending), Job(5, State::kPending)};
  Demand demand = Queued("any", 1);
  demand.workers = {"slurm-1-a-cuda0", "slurm-2-a-cuda0"};
  EXPECT_THAT(Decide(kAnything, demand, jobs, {.ceiling = 10}).cancel, ElementsAre(5, 4));
  EXPECT_THAT(Decide(kAnything, demand, jobs, {.floor = 4, .ceiling = 10}).cancel, ElementsAre(5));
  EXPECT_THAT(Decide(kAnything, Queued("any", 3), jobs, {.ceiling = 10}).cancel, ElementsAre(5, 4))
      << "two that start will take two of the three";
}

TEST(FleetDecisionTest, DoesNotWaitForAJobThatMayNotBegin) {
  const std::vector<FleetJob> jobs = {Job(1, State::kHeld), Job(2, State::kEnding)};
  const Decision decision = Decide(kAnything, Queued("any", 5), jobs, {.ceiling = 4});
  EXPECT_THAT(decision.submit, ElementsAre(Pair("", 2))) << "they count for the ceiling";
  EXPECT_THAT(decision.cancel, IsEmpty());
}

TEST(FleetDecisionTest, KnowsAJobsWorkerByItsName) {
  EXPECT_TRUE(IsWorkerOfJob("slurm-12-node-cuda0", 12));
  EXPECT_FALSE(IsWorkerOfJob("slurm-123-node-cuda0", 12));
  EXPECT_FALSE(IsWorkerOfJob("gpu-host-cuda0", 12));
}

TEST(FleetDemandTest, ReadsMetricsAndWorkers) {
  const absl::StatusOr<Demand> demand = ReadDemand(
      "# TYPE pawl_serving gauge\npawl_serving 1\npawl_trials_queued{gpu=\"a \\\"b\\\"\"} 3\n"
      "pawl_trials_queued{gpu=\"any\"} 2\npawl_workers{gpu=\"NVIDIA H200\",state=\"idle\"} 4\n"
      "pawl_workers{gpu=\"NVIDIA H200\",state=\"busy\"} 9\n",
      R"({"workers": [{"name": "workers/slurm-1-a-cuda0", "device": {"kind": "DEVICE_KIND_CUDA", "label": "NVIDIA H200"}},
                      {"name": "workers/b", "device": {"kind": "DEVICE_KIND_REPLAY", "label": "replay of it"}}]})");
  ASSERT_TRUE(demand.ok()) << demand.status();
  EXPECT_THAT(demand->queued, ElementsAre(Pair("a \"b\"", 3), Pair("any", 2)));
  EXPECT_THAT(demand->idle, ElementsAre(Pair("NVIDIA H200", 4)));
  EXPECT_THAT(demand->workers, ElementsAre("slurm-1-a-cuda0", "b"));
  EXPECT_THAT(demand->replays, ElementsAre("replay of it"));
}

TEST(FleetDemandTest, RefusesWhatIsNoAnswerOfPawl) {
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadDemand("<html>", "<html>").status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadDemand("pawl_serving 1\n", "[]").status()));
  EXPECT_TRUE(absl::IsUnavailable(ReadDemand("pawl_serving 0\n", "{}").status()));
  EXPECT_TRUE(ReadDemand("pawl_serving 1\n", "{}").ok()) << "no workers yet";
}

}  // namespace
}  // namespace pawl
