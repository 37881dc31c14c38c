#include "fleet/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using State = FleetJob::State;

// A cluster and an orchestrator as far as the controller sees them, with a clock of their own.
class FleetControllerTest : public testing::Test {
 protected:
  FleetControllerTest() {
    options_.limits.ceiling = 50;
    demand_.queued["any"] = 10;
  }

  FleetSeams Seams() {
    FleetSeams seams;
    seams.ask = [this]() -> absl::StatusOr<Demand> {
      if (!orchestrator_.ok()) return orchestrator_;
      return demand_;
    };
    seams.all_workers = [this]() -> absl::StatusOr<std::vector<std::string>> {
      ++asked_for_all_;
      std::vector<std::string> all = demand_.workers;
      all.insert(all.end(), gone_.begin(), gone_.end());
      return all;
    };
    seams.jobs = [this]() -> absl::StatusOr<std::vector<FleetJob>> {
      if (!slurm_.ok()) return slurm_;
      return jobs_;
    };
    seams.submit = [this](const GpuClass& gpu) -> absl::StatusOr<int64_t> {
      ++submissions_;
      if (!sbatch_.ok()) return sbatch_;
      FleetJob job;
      job.id = ++last_id_;
      job.gpu = gpu.gpu;
      job.state = die_ ? State::kFailed : State::kPending;
      job.reason = die_ ? "NonZeroExitCode" : "None";
      job.ended = die_ ? absl::ToUnixSeconds(now_ - slurm_is_behind_) : 0;
      jobs_.push_back(job);
      return job.id;
    };
    seams.cancel = [this](const std::vector<int64_t>& jobs) {
      cancelled_.insert(cancelled_.end(), jobs.begin(), jobs.end());
      std::erase_if(jobs_,
                    [&](const FleetJob& job) { return std::find(jobs.begin(), jobs.end(), job.id) != jobs.end(); });
      return absl::OkStatus();
    };
    seams.say = [this](bool warning, const std::string& text) {
      if (warning) warnings_.push_back(text);
    };
    return seams;
  }
  void Restart() { controller_ = std::make_unique<FleetController>(options_, Seams()); }
  void Pass(absl::Duration time) {
    if (controller_ == nullptr) Restart();
    for (const absl::Time end = now_ + time; now_ < end; now_ += absl::Seconds(10)) controller_->Step(now_);
  }
  // Pending jobs begin, and their workers register.
  void Begin() {
    for (FleetJob& job : jobs_) {
      if (job.state != State::kPending) continue;
      job.state = State::kRunning;
      demand_.workers.push_back(absl::StrCat("slurm-", job.id, "-node-cuda0"));
    }
  }

  // All that wait for a node or run have ended well.
  void Complete() {
    for (FleetJob& job : jobs_) {
      if (job.state != State::kPending && job.state != State::kRunning) continue;
      job.state = State::kEnded;
      job.completed = true;
    }
  }

  FleetOptions options_;
  Demand demand_;
  std::vector<std::string> gone_;
  int asked_for_all_ = 0;
  std::vector<FleetJob> jobs_;
  absl::Status orchestrator_, slurm_, sbatch_;
  bool die_ = false;
  absl::Duration slurm_is_behind_;
  int submissions_ = 0;
  int64_t last_id_ = 0;
  std::vector<int64_t> cancelled_;
  std::vector<std::string> warnings_;
  absl::Time now_ = absl::FromUnixSeconds(1'790'000'000);
  std::unique_ptr<FleetController> controller_;
};

TEST_F(FleetControllerTest, GrowsWithTheQueueAndLetsItGo) {
  Pass(absl::Seconds(30));
  EXPECT_EQ(submissions_, 10);
  Begin();
  demand_.queued["any"] = 0;
  Pass(absl::Minutes(5));
  EXPECT_EQ(submissions_, 10);
  EXPECT_THAT(cancelled_, IsEmpty()) << "workers end by themselves";
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(FleetControllerTest, CancelsPendingJobsOnlyWhenTheQueueStaysEmpty) {
  Pass(absl::Seconds(10));
  demand_.queued["any"] = 0;
  Pass(absl::Seconds(10));
  demand_.queued["any"] = 10;
  Pass(absl::Seconds(10));
  EXPECT_THAT(cancelled_, IsEmpty());
  demand_.queued["any"] = 0;
  Pass(absl::Seconds(30));
  EXPECT_EQ(cancelled_.size(), 10u);
  EXPECT_THAT(jobs_, IsEmpty());
}

TEST_F(FleetControllerTest, NeitherLosesNorDoublesJobsWhenItIsKilled) {
  for (int i = 0; i < 20; ++i) {
    Restart();
    Pass(absl::Seconds(10));
    EXPECT_EQ(submissions_, 10);
  }
}

TEST_F(FleetControllerTest, HoldsBackWhereJobsDieAtOnce) {
  die_ = true;
  Pass(absl::Hours(10));
  EXPECT_LT(submissions_, 10 + 75) << "no storm: then one in ten minutes";
  EXPECT_GT(submissions_, 10 + 40) << "it goes on trying";
  ASSERT_EQ(warnings_.size(), 1u) << "one message";
  EXPECT_THAT(warnings_[0], HasSubstr("worker jobs fail at once, the last one was"));
}

TEST_F(FleetControllerTest, HoldsBackAfterARestartToo) {
  die_ = true;
  Pass(absl::Seconds(10));
  const int before = submissions_;
  Restart();
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_, before) << "Slurm still shows those that failed";
}

TEST_F(FleetControllerTest, HoldsBackWhereSlurmsClockIsMinutesBehind) {
  die_ = true;
  slurm_is_behind_ = absl::Minutes(5);
  Pass(absl::Seconds(30));
  EXPECT_EQ(submissions_, 10) << "20 s after it saw that they failed, which was at the second look";
}

// As cron starts it.
TEST_F(FleetControllerTest, TriesAgainThoughEachDecisionIsANewProcess) {
  die_ = true;
  std::vector<int> submitted;
  for (int i = 0; i < 60; ++i) {
    Restart();
    const int before = submissions_;
    Pass(absl::Seconds(10));
    if (submissions_ > before) submitted.push_back(i);
  }
  EXPECT_THAT(submitted, ElementsAre(0, 2, 6, 14, 30)) << "20, 40, 80 and 160 s after the last one failed";
  EXPECT_EQ(submissions_, 10 + 4);
}

TEST_F(FleetControllerTest, KnowsAfterARestartThatJobsWorkedSince) {
  die_ = true;
  Pass(absl::Seconds(10));
  die_ = false;
  jobs_.emplace_back().id = ++last_id_;  // it has ended
  gone_.push_back(absl::StrCat("slurm-", last_id_, "-node-cuda0"));
  warnings_.clear();
  Restart();
  EXPECT_TRUE(controller_->Step(now_));
  EXPECT_THAT(warnings_, IsEmpty());
  EXPECT_EQ(submissions_, 10 + 10);
}

TEST_F(FleetControllerTest, SaysAnotherCauseToo) {
  die_ = true;
  Pass(absl::Minutes(10));
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_FALSE(controller_->Step(now_));
  FleetJob& job = jobs_.emplace_back();
  job.id = ++last_id_;
  job.state = State::kFailed;
  job.reason = "JobLaunchFailure";
  job.log = "/home/ann/7.log";
  Pass(absl::Seconds(10));
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_THAT(warnings_[1], HasSubstr("(JobLaunchFailure): see /home/ann/7.log"));
}

TEST_F(FleetControllerTest, HoldsBackWhereSlurmRefusesThoughAnEarlierJobWorks) {
  demand_.queued["any"] = 1;
  Pass(absl::Seconds(10));
  Begin();
  demand_.queued["any"] = 10;
  sbatch_ = absl::FailedPreconditionError("sbatch failed: the account has expired");
  Pass(absl::Hours(1));
  EXPECT_LT(submissions_, 1 + 14);
  EXPECT_EQ(warnings_.size(), 1u);
}

TEST_F(FleetControllerTest, GoesOnAsBeforeWhenANewWorkerRegisters) {
  die_ = true;
  Pass(absl::Minutes(30));
  die_ = false;
  while (std::none_of(jobs_.begin(), jobs_.end(), [](const FleetJob& job) { return job.state == State::kPending; })) {
    Pass(absl::Seconds(10));
  }
  Begin();
  demand_.queued["any"] = 9;
  const int before = submissions_;
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_ - before, 9);
}

TEST_F(FleetControllerTest, HoldsBackWhereJobsEndWellAndNeverReachTheOrchestrator) {
  for (int i = 0; i < 360; ++i) {
    Pass(absl::Seconds(10));
    Complete();
  }
  EXPECT_LT(submissions_, 10 + 15) << "an hour: no storm";
  EXPECT_GT(submissions_, 10 + 5) << "it goes on trying";
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("worker jobs end without reaching the orchestrator, the last one was")));
  Restart();
  const int before = submissions_;
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_, before) << "Slurm still shows them";
}

TEST_F(FleetControllerTest, AJobWhoseWorkerCameAndWentIsNoFailure) {
  Pass(absl::Seconds(10));
  Begin();
  demand_.queued["any"] = 0;
  Pass(absl::Seconds(10));
  Complete();
  demand_.workers.clear();
  demand_.queued["any"] = 10;
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_, 20);
  EXPECT_EQ(asked_for_all_, 0) << "it was seen";
  for (const FleetJob& job : jobs_) gone_.push_back(absl::StrCat("slurm-", job.id, "-node-cuda0"));
  Complete();  // between two decisions
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_, 30);
  EXPECT_EQ(asked_for_all_, 1);
  EXPECT_THAT(warnings_, IsEmpty());
  Begin();
  Restart();
  Pass(absl::Minutes(10));
  EXPECT_EQ(asked_for_all_, 2) << "and once by a new process";
}

TEST_F(FleetControllerTest, HoldsBackWhereSlurmRefuses) {
  sbatch_ = absl::FailedPreconditionError("sbatch failed: Requested node configuration is not available");
  Pass(absl::Hours(1));
  EXPECT_LT(submissions_, 15);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("Requested node configuration is not available")));
}

TEST_F(FleetControllerTest, DoesNothingWhileItSeesNothing) {
  slurm_ = absl::UnavailableError("squeue was killed after 20 s");
  Pass(absl::Minutes(10));
  slurm_ = absl::OkStatus();
  orchestrator_ = absl::UnavailableError("the orchestrator does not answer");
  Pass(absl::Minutes(10));
  EXPECT_EQ(submissions_, 0);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("squeue was killed"), HasSubstr("does not answer")));
  orchestrator_ = absl::OkStatus();
  Pass(absl::Seconds(10));
  EXPECT_EQ(submissions_, 10);
}

TEST_F(FleetControllerTest, ReplacesAJobWhoseWorkerNeverRegisters) {
  demand_.queued["any"] = 1;
  Pass(absl::Seconds(10));
  jobs_[0].state = State::kRunning;
  Pass(absl::Minutes(4));
  EXPECT_EQ(submissions_, 1);
  Pass(absl::Minutes(3));
  EXPECT_EQ(submissions_, 2);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("did not register within 5m")));
}

TEST_F(FleetControllerTest, SaysThatAPartitionHasNoSuchGpu) {
  Pass(absl::Seconds(10));
  for (FleetJob& job : jobs_) job.reason = "BadConstraints";
  Pass(absl::Minutes(1));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("has the partition such GPUs?")));
}

}  // namespace
}  // namespace pawl
