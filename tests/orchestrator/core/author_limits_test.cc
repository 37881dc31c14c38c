// Limits of GPU seconds and dollars by author.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "kernels/space.h"
#include "orchestrator/core/service_metrics.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

OrchestratorOptions WithLimits(std::map<std::string, SpendingLimit> limits) {
  OrchestratorOptions options;
  options.limits = std::move(limits);
  return options;
}

SpendingLimit GpuSeconds(double seconds) { return {.gpu_seconds = seconds, .dollars = {}}; }
SpendingLimit Dollars(double dollars) { return {.gpu_seconds = {}, .dollars = dollars}; }

v1::Campaign SubmitAs(World& world, const std::string& author, double minutes = 0) {
  v1::SubmitCampaignRequest request;
  *request.mutable_bundle() = TinyBundle();
  request.mutable_spec()->mutable_budget()->set_minutes(minutes);
  request.set_author(author);
  const absl::StatusOr<v1::Campaign> campaign = world->Submit(request);
  EXPECT_TRUE(campaign.ok()) << campaign.status();
  return campaign.ok() ? *campaign : v1::Campaign();
}

// Each trial takes 100 s of the GPU, which costs 3.80 dollars an hour: 10.6 cents.
v1::TrialResult Takes100s(const v1::Trial& trial) {
  v1::TrialResult result = NothingHelps(trial);
  result.clear_stages();
  result.add_stages()->set_seconds(100);
  return result;
}

TEST(AuthorLimitsTest, NoTrialIsLeasedOnceTheSecondsAreUsedUpAndRunningOnesCount) {
  World world(WithLimits({{"ann", GpuSeconds(200)}}));
  const std::string anns = SubmitAs(world, "ann").name();
  const std::string again = SubmitAs(world, "ann").name();
  ScriptedWorker one(world, "a"), two(world, "b"), third(world, "c");
  ASSERT_TRUE(one.Complete(one.MustLease(), Takes100s).ok());
  const v1::LeaseTrialResponse first = one.MustLease(), second = two.MustLease();  // 100 of 200 are used
  ASSERT_TRUE(one.Complete(first, Takes100s).ok());
  EXPECT_FALSE(third.Lease()->has_trial()) << "200 of 200";
  ASSERT_TRUE(two.Complete(second, Takes100s, /*lease_next=*/true).ok()) << "what runs is finished and counts";
  EXPECT_EQ(world.Get(anns).gpu_seconds() + world.Get(again).gpu_seconds(), 300);

  const v1::Campaign waits = world.Get(anns);
  EXPECT_EQ(waits.state(), v1::RUNNING);
  EXPECT_EQ(waits.waiting_for(), v1::WAITING_FOR_LIMIT);
  EXPECT_THAT(waits.message(),
              HasSubstr("ann has used 300 of 200 GPU seconds within 30 days: no trial is leased until 20"));
  EXPECT_THAT(waits.message(), HasSubstr("--limit-gpu-seconds"));
  const std::string bobs = SubmitAs(world, "bob").name();
  EXPECT_EQ(third.MustLease().trial().name(), bobs + "/trials/1") << "others go on";
}

TEST(AuthorLimitsTest, AWorkerThatReachesTheLimitGetsNoNextTrialWithItsAnswer) {
  World world(WithLimits({{"*", GpuSeconds(100)}}));
  SubmitAs(world, "ann");
  ScriptedWorker worker(world, "a");
  const auto answer = worker.Complete(worker.MustLease(), Takes100s, /*lease_next=*/true);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->has_next());
}

TEST(AuthorLimitsTest, DollarsAreByTheGpusPriceAndReplaysCostNothing) {
  World world(WithLimits({{"*", Dollars(0.2)}}));
  const std::string campaign = SubmitAs(world, "ann").name();
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 2) << "10.6 cents each";
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("ann has used $0.21 of $0.20 within 30 days"));

  World replays(WithLimits({{"*", {.gpu_seconds = 1, .dollars = 0.01}}}));
  SubmitAs(replays, "ann");
  v1::Device recording = MadeDevice("replay of an NVIDIA H200", v1::DEVICE_KIND_REPLAY);
  recording.add_bundle_hashes(BundleHash(TinyBundle()));
  ScriptedWorker replay(replays, "r", recording);
  EXPECT_EQ(replay.RunAll(Takes100s), 5);
}

TEST(AuthorLimitsTest, ASubmissionBeyondTheLimitIsAcceptedAndSaysThatItWaits) {
  World world(WithLimits({{"ann", GpuSeconds(100)}}));
  SubmitAs(world, "ann");
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 1);
  const v1::Campaign accepted = SubmitAs(world, "ann");
  EXPECT_EQ(accepted.state(), v1::WAITING);
  EXPECT_EQ(accepted.waiting_for(), v1::WAITING_FOR_LIMIT);
  EXPECT_THAT(accepted.message(), HasSubstr("ann has used 100 of 100 GPU seconds"));
  v1::ListCampaignsResponse list = world.history().ListCampaigns({}).value();
  world->AddWaits(&list);
  for (const v1::Campaign& campaign : list.campaigns()) EXPECT_EQ(campaign.waiting_for(), v1::WAITING_FOR_LIMIT);
  EXPECT_THAT(ServiceMetrics(*world, world.store()).value(), HasSubstr("pawl_campaigns_waiting{for=\"limit\"} 2\n"));
  EXPECT_THAT(ServiceMetrics(*world, world.store()).value(), HasSubstr("pawl_trials_held{gpu=\"NVIDIA H200\"} 1\n"))
      << "nobody should start a worker for it";
  EXPECT_THAT(ServiceMetrics(*world, world.store()).value(), HasSubstr("pawl_trials_queued{gpu=\"NVIDIA H200\"} 0\n"));
}

TEST(AuthorLimitsTest, ItGoesOnByItselfWhenTheWindowHasPassed) {
  World world(WithLimits({{"ann", GpuSeconds(200)}}));
  const std::string campaign = SubmitAs(world, "ann", /*minutes=*/10).name();
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 2);
  const double minutes = world.Get(campaign).minutes();
  for (int day = 0; day < 30; ++day) world.Pass(absl::Hours(24));
  EXPECT_DOUBLE_EQ(world.Get(campaign).minutes(), minutes) << "the wait is no part of the budget";
  EXPECT_FALSE(worker.Lease()->has_trial());
  absl::StatusOr<v1::LeaseTrialResponse> answer = worker.Lease();
  for (int tenth = 0; tenth < 7 && !answer->has_trial(); ++tenth) {
    world.Pass(absl::Minutes(10));  // an hour counts until all of it is outside
    answer = worker.Lease();
    ASSERT_TRUE(answer.ok()) << answer.status();
  }
  ASSERT_TRUE(answer->has_trial());
  EXPECT_LT(world.Get(campaign).minutes(), minutes + 0.01);
  ASSERT_TRUE(worker.Complete(*answer, NothingHelps).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING) << "its 10 minutes are not used up";
}

// Whatever happens to the campaign while none of its trials can be leased.
TEST(AuthorLimitsTest, TheWaitUsesUpNoMinutesThoughAChangeIsProposedMeanwhile) {
  World world(WithLimits({{"ann", GpuSeconds(200)}}));
  const std::string campaign = SubmitAs(world, "ann", /*minutes=*/10).name();
  const std::string unbegun = SubmitAs(world, "ann", /*minutes=*/10).name();
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 2);
  for (int i = 0; i < 60; ++i) world.Pass(absl::Minutes(1));
  v1::ProposeChangeRequest proposal;
  proposal.set_campaign(campaign);
  proposal.mutable_change()->set_variable("SPLIT");
  proposal.mutable_change()->set_to(4);
  const absl::Status proposed = world->Propose(proposal).status();
  for (int i = 0; i < 60; ++i) world.Pass(absl::Minutes(1));
  EXPECT_EQ(world.Get(campaign).minutes(), 0) << proposed;
  EXPECT_EQ(world.Get(unbegun).minutes(), 0);
  world.RestartWithLimits({});
  ASSERT_TRUE(worker.Register().ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  EXPECT_NEAR(world.Get(campaign).minutes(), 0, 0.05);
  ASSERT_TRUE(worker.Renew(leased.lease()).ok());
  world.Pass(absl::Seconds(6));
  EXPECT_NEAR(world.Get(campaign).minutes(), 0.1, 0.05) << "it runs again";
}

TEST(AuthorLimitsTest, SurvivesARestartAndARaisedLimitLetsItGoOn) {
  World world(WithLimits({{"ann", GpuSeconds(200)}}));
  const std::string campaign = SubmitAs(world, "ann", /*minutes=*/10).name();
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 2);
  for (int i = 0; i < 60; ++i) world.Pass(absl::Minutes(1));
  world.Restart();
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_FALSE(worker.Lease()->has_trial());
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_LIMIT);
  world.RestartWithLimits({{"ann", GpuSeconds(300)}});
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_EQ(worker.RunAll(Takes100s), 1);
  EXPECT_LT(world.Get(campaign).minutes(), 0.1) << "an hour of waiting is no part of the 10 minutes";
}

TEST(AuthorLimitsTest, WhoIsNamedHasTheirOwnLimitAndTheEmptyAuthorIsOne) {
  World world(WithLimits({{"ann", GpuSeconds(300)}, {"*", GpuSeconds(100)}}));
  SubmitAs(world, "ann");
  SubmitAs(world, "");
  SubmitAs(world, "bob");
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 3 + 1 + 1);
  EXPECT_THAT(world.Get("campaigns/2").message(), HasSubstr("submissions without an author have used 100 of 100"));
}

TEST(AuthorLimitsTest, CountsCampaignsOfAnOlderPawlWhenTheyEnded) {
  World world;
  SubmitAs(world, "ann");
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(Takes100s), 5);
  world.RestartAfter([&] {
    auto database = SqliteConnection::Open(world.file(), SqliteConnection::Mode::kWrite, 1000);
    ASSERT_TRUE(database.ok());
    // As the migration leaves it.
    ASSERT_TRUE((*database)
                    ->Execute("DELETE FROM spending; INSERT INTO meta (key, value) VALUES ('uncounted spending', x'')")
                    .ok());
  });
  world.RestartWithLimits({{"ann", GpuSeconds(500)}});
  SubmitAs(world, "ann");
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_EQ(worker.RunAll(Takes100s), 0);
  EXPECT_THAT(world.Get("campaigns/2").message(), HasSubstr("ann has used 500 of 500 GPU seconds"));
  EXPECT_FALSE(world.store().SpendingUncounted().value());
}

}  // namespace
}  // namespace pawl
