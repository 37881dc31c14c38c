// A pause of the whole service.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "orchestrator/core/service_metrics.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

v1::Maintenance Set(World& world, bool on, const std::string& reason = "") {
  v1::SetMaintenanceRequest request;
  request.set_on(on);
  request.set_reason(reason);
  request.set_author("olga");
  const absl::StatusOr<v1::Maintenance> set = world->SetMaintenance(request);
  EXPECT_TRUE(set.ok()) << set.status();
  return set.ok() ? *set : v1::Maintenance();
}

v1::CampaignSpec Minutes(double minutes) {
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_minutes(minutes);
  return spec;
}

TEST(MaintenanceTest, LeasesNothingWhileWhatRunsFinishesAndCounts) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  const v1::Maintenance begun = Set(world, true, "new driver");
  EXPECT_TRUE(begun.on());
  EXPECT_EQ(begun.reason(), "new driver");
  EXPECT_EQ(begun.author(), "olga");
  EXPECT_EQ(begun.leased(), 1);
  const auto completed = worker.Complete(leased, NothingHelps, /*lease_next=*/true);
  ASSERT_TRUE(completed.ok()) << completed.status();
  EXPECT_FALSE(completed->has_next());
  EXPECT_EQ(world->GetMaintenance().leased(), 0) << "drained";
  EXPECT_EQ(world.Iterations(campaign).size(), 1u);

  const std::string later = world.Submit();
  for (const std::string& name : {campaign, later}) {
    EXPECT_EQ(world.Get(name).waiting_for(), v1::WAITING_FOR_MAINTENANCE);
    EXPECT_THAT(world.Get(name).message(),
                HasSubstr("UTC (new driver): no trial is leased until pawl maintenance off"));
  }
  const std::string metrics = ServiceMetrics(*world, world.store()).value();
  EXPECT_THAT(metrics, HasSubstr("pawl_maintenance 1\n"));
  EXPECT_THAT(metrics, HasSubstr("pawl_campaigns_waiting{for=\"maintenance\"} 2\n"));
  EXPECT_THAT(metrics, HasSubstr("pawl_trials_held{gpu=\"any\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("pawl_trials_queued{gpu=\"any\"} 0\n"));

  EXPECT_FALSE(Set(world, false).on());
  EXPECT_EQ(worker.RunAll(), 4 + 5);
  EXPECT_EQ(world.Get(campaign).state(), v1::FINISHED);
}

TEST(MaintenanceTest, WorkersWaitWithoutAnErrorAndGetATrialAtItsEnd) {
  World world;
  world.Submit();
  Set(world, true);
  ScriptedWorker worker(world, "a");
  std::optional<absl::StatusOr<v1::LeaseTrialResponse>> answer;
  const auto ask = [&] {
    answer.reset();
    worker.Wait(30, [&](absl::StatusOr<v1::LeaseTrialResponse> given) { answer = std::move(given); });
  };
  ask();
  for (int i = 0; i < 4; ++i) world.Pass(absl::Seconds(10));
  ASSERT_TRUE(answer.has_value());
  ASSERT_TRUE(answer->ok()) << answer->status();
  EXPECT_FALSE((*answer)->has_trial()) << "ask again";
  ask();
  Set(world, false);
  ASSERT_TRUE(answer.has_value());
  EXPECT_TRUE(answer->ok() && (*answer)->has_trial());
}

TEST(MaintenanceTest, UsesUpNoMinutesWhateverIsRestarted) {
  World world;
  const std::string campaign = world.Submit(Minutes(10));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (int round = 0; round < 3; ++round) {
    world.Pass(absl::Seconds(6));
    const double before = world.Get(campaign).minutes();
    Set(world, true);
    for (int i = 0; i < 30; ++i) world.Pass(absl::Minutes(1));
    EXPECT_NEAR(world.Get(campaign).minutes(), before, 1e-9);
    world.RestartAfter(absl::Hours(1));
    EXPECT_TRUE(world->GetMaintenance().on());
    ASSERT_TRUE(worker.Register().ok());
    EXPECT_FALSE(worker.Lease()->has_trial());
    for (int i = 0; i < 30; ++i) world.Pass(absl::Minutes(1));
    EXPECT_NEAR(world.Get(campaign).minutes(), before, 1e-9);
    Set(world, false);
    world.Restart();
    EXPECT_NEAR(world.Get(campaign).minutes(), before, 1e-9);
    ASSERT_TRUE(worker.Register().ok());
  }
  EXPECT_NEAR(world.Get(campaign).minutes(), 0.3, 1e-9);
  EXPECT_EQ(worker.RunAll(), 4);
  EXPECT_EQ(world.Get(campaign).stop_reason(), v1::STOP_REASON_SPACE);
}

TEST(MaintenanceTest, ALostWorkersTrialIsLostSoThatItDrains) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Renew(worker.MustLease().lease()).ok());
  Set(world, true);
  for (int i = 0; i < 30; ++i) world.Pass(absl::Seconds(1));
  EXPECT_EQ(world->GetMaintenance().leased(), 0);
  ASSERT_EQ(world.Events(campaign, v1::Event::kLost).size(), 1u);
  Set(world, false);
  ScriptedWorker other(world, "b");
  EXPECT_EQ(other.RunAll(), 5) << "it is leased again";
}

TEST(MaintenanceTest, ChangesNoStateSoThatWhatWasPausedStaysPaused) {
  World world;
  const std::string paused = world.Submit(), waits = world.Submit();
  v1::PauseCampaignRequest pause;
  pause.set_name(paused);
  pause.set_reason("mine");
  ASSERT_TRUE(world->Pause(pause).ok());
  Set(world, true, "first");
  EXPECT_EQ(Set(world, true, "second").reason(), "second") << "once more replaces the reason";
  const size_t events = world.Events(waits).size();
  EXPECT_EQ(world.Get(paused).message(), "mine");
  Set(world, false);
  Set(world, false);
  EXPECT_EQ(world.Events(waits).size(), events);
  EXPECT_EQ(world.Get(paused).state(), v1::PAUSED);
  EXPECT_EQ(world.Get(waits).state(), v1::WAITING);
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(), 5) << "of the other one";
}

TEST(MaintenanceTest, AProposalMayBeMadeForAsLongAfterItAsBefore) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
  spec.mutable_chooser()->set_wait_seconds(100);
  spec.mutable_chooser()->set_no_proposal(v1::NO_PROPOSAL_PAUSE);
  const std::string campaign = world.Submit(spec);
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (int i = 0; i < 9; ++i) world.Pass(absl::Seconds(10));
  Set(world, true);
  for (int i = 0; i < 90; ++i) world.Pass(absl::Seconds(10));
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_MAINTENANCE);
  Set(world, false);
  world.Pass(absl::Seconds(9));
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_PROPOSAL);
  world.Pass(absl::Seconds(2));
  EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED);
}

}  // namespace
}  // namespace pawl
