#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/engine/search/single_change.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

TEST(RoundTest, TriesAsManyChangesOfOneParentAtOnceAsThereAreWorkers) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker a(world, "a"), b(world, "b"), c(world, "c", MadeDevice("NVIDIA L4"));
  ASSERT_TRUE(a.Complete(a.MustLease()).ok());
  const v1::LeaseTrialResponse first = a.MustLease(), second = b.MustLease();
  EXPECT_EQ(first.trial().iteration(), campaign + "/iterations/1");
  EXPECT_EQ(second.trial().iteration(), campaign + "/iterations/2");
  EXPECT_FALSE(c.Lease()->has_trial()) << "it is of another device";
  ASSERT_TRUE(b.Complete(second, EverythingHelps).ok());
  const v1::LeaseTrialResponse next = b.MustLease();
  EXPECT_EQ(Differences(next.trial().parent(), second.trial().variant()), 0) << "nobody waits for the slowest";
  ASSERT_TRUE(a.Complete(first).ok());
  EXPECT_TRUE(a.MustLease().has_trial());
}

TEST(RoundTest, StaysWithinTheIterations) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(3);
  const std::string campaign = world.Submit(spec);
  ScriptedWorker a(world, "a"), b(world, "b");
  a.RunAll();
  b.RunAll();
  a.RunAll();
  EXPECT_EQ(world.Iterations(campaign).size(), 4u);
  EXPECT_EQ(world.Get(campaign).stop_reason(), v1::STOP_REASON_ITERATIONS);
}

TEST(RoundTest, SharesTheWorkersWithOtherCampaigns) {
  World world;
  world.Submit();
  world.Submit();
  ScriptedWorker a(world, "a"), b(world, "b");
  const v1::LeaseTrialResponse one = a.MustLease(), two = b.MustLease();
  ASSERT_TRUE(a.Complete(one).ok());
  ASSERT_TRUE(b.Complete(two).ok());
  EXPECT_TRUE(a.MustLease().has_trial());
  EXPECT_TRUE(b.MustLease().has_trial());
  ScriptedWorker c(world, "c");
  EXPECT_FALSE(c.Lease()->has_trial()) << "two campaigns have one trial each";
}

TEST(TotalGainTest, IsMeasuredBeforeACampaignClaimsIt) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker a(world, "a");
  a.RunAll([](const v1::Trial& trial) {
    // The steps promise a tenth each; beside the start it is a fifth in all.
    if (trial.purpose() == v1::TRIAL_PURPOSE_TOTAL) return Measured(trial.parent_us(), trial.parent_us() * 0.8);
    return trial.has_parent() ? Measured(trial.parent_us(), trial.parent_us() * 0.9) : MeasuredStart(100);
  });
  const v1::Campaign ended = world.Get(campaign);
  EXPECT_EQ(ended.state(), v1::FINISHED);
  EXPECT_EQ(ended.total_gain().iteration(), ended.best());
  EXPECT_GT(ended.total_gain().multiplied(), 1.3);
  EXPECT_NEAR(ended.total_gain().speedup_over_start(), 1.25, 0.001);
  EXPECT_NEAR(ended.speedup_over_start(), 1.25, 0.001);
  world.Restart();
  EXPECT_NEAR(world.Get(campaign).speedup_over_start(), 1.25, 0.001);
  v1::GetBestVariantRequest best;
  best.set_campaign(campaign);
  EXPECT_NEAR(world.history().GetBestVariant(best)->iteration().speedup_over_start(), 1.25, 0.001);
}

TEST(TotalGainTest, RejectsAWinnerThatKillsWorkersThere) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(2);
  const std::string campaign = world.Submit(spec);
  ScriptedWorker a(world, "a");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.Complete(a.MustLease(), EverythingHelps).ok());
  for (int lost = 0; lost < 3; ++lost) {
    ScriptedWorker victim(world, "v", MadeDevice(), std::to_string(lost));
    const v1::LeaseTrialResponse leased = victim.MustLease();
    EXPECT_EQ(leased.trial().purpose(), v1::TRIAL_PURPOSE_TOTAL);
    ASSERT_TRUE(victim.Renew(leased.lease()).ok()) << "only a worker that began it counts against it";
    world.Pass(absl::Seconds(16));
  }
  for (const bool restarted : {false, true}) {
    if (restarted) world.Restart();
    const v1::Campaign after = world.Get(campaign);
    EXPECT_EQ(after.best(), 1) << "nothing says that the other one is right at large sizes";
    EXPECT_EQ(after.total_gain().speedup_over_start(), 0);
    EXPECT_THAT(after.total_gain().interval().reason(), HasSubstr("3 workers were lost"));
    const v1::Iteration winner = world.Iterations(campaign).back();
    EXPECT_EQ(winner.verdict(), v1::REJECTED);
    EXPECT_THAT(winner.reason(), HasSubstr("3 workers were lost"));
  }
  ScriptedWorker b(world, "b");
  const v1::LeaseTrialResponse next = b.MustLease();
  EXPECT_EQ(next.trial().purpose(), v1::TRIAL_PURPOSE_TOTAL) << "of the one before";
  ASSERT_TRUE(b.Complete(next).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::FINISHED);
}

TEST(BaselineTest, PausesACampaignWhoseBaselineIsNotWhatItWasBefore) {
  World world;
  ScriptedWorker a(world, "a");
  double baseline_us = 50;
  const Measure measure = [&](const v1::Trial& trial) {
    v1::TrialResult result = NothingHelps(trial);
    if (!trial.has_parent()) {
      result.add_baselines()->set_size("main");
      result.mutable_baselines(0)->set_graph_us(baseline_us);
      result.mutable_baselines(0)->set_what("torch");
    }
    return result;
  };
  const std::string before = world.Submit();
  a.RunAll(measure);
  ASSERT_EQ(world.Get(before).state(), v1::FINISHED);
  world.Restart();
  ASSERT_TRUE(a.Register().ok());
  baseline_us = 54;
  const std::string close = world.Submit();
  a.RunAll(measure);
  EXPECT_EQ(world.Get(close).state(), v1::FINISHED) << "within a tenth";
  baseline_us = 70;
  const std::string off = world.Submit();
  a.RunAll(measure);
  EXPECT_EQ(world.Get(off).state(), v1::PAUSED);
  EXPECT_THAT(world.Get(off).message(), AllOf(HasSubstr("70.000 us"), HasSubstr("54.000 us"), HasSubstr("baseline")));
  v1::ResumeCampaignRequest resume;
  resume.set_name(off);
  ASSERT_TRUE(world->Resume(resume).ok());
  a.RunAll(measure);
  EXPECT_EQ(world.Get(off).state(), v1::FINISHED);
}

}  // namespace
}  // namespace pawl
