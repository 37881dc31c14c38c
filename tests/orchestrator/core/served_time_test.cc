// What counts as time: that in which an orchestrator served, whatever the system's clock says.
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

v1::CampaignSpec Minutes(double minutes) {
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_minutes(minutes);
  return spec;
}

TEST(ServedTimeTest, AnOutageUsesUpNoMinutes) {
  World world;
  const std::string campaign = world.Submit(Minutes(10));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Pass(absl::Seconds(6));
  const double before = world.Get(campaign).minutes();
  EXPECT_DOUBLE_EQ(before, 0.1);
  const absl::Duration outage = absl::Hours(2);
  world.RestartAfter(outage);
  EXPECT_DOUBLE_EQ(world.Get(campaign).minutes(), 0.1);
  ASSERT_TRUE(worker.Complete(leased).ok());
  EXPECT_EQ(worker.RunAll(), 3);
  EXPECT_EQ(world.Get(campaign).stop_reason(), v1::STOP_REASON_SPACE);
  EXPECT_DOUBLE_EQ(world.Get(campaign).minutes(), 0.1);
  ReportPromise(18, absl::StrFormat("an outage of %s used up %g of the campaign's 10 minutes",
                                    absl::FormatDuration(outage), world.Get(campaign).minutes() - before));
}

TEST(ServedTimeTest, TimeThatWasServedStillCountsAfterARestart) {
  World world;
  const std::string campaign = world.Submit(Minutes(1));
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  for (int i = 0; i < 13; ++i) {
    world.Pass(absl::Seconds(4));
    ASSERT_TRUE(worker.Renew(leased.lease()).ok());
    world.Pass(absl::Seconds(1));
    world.RestartAfter(absl::Minutes(1));
  }
  EXPECT_NEAR(world.Get(campaign).minutes(), 13 * 5.0 / 60, 1e-9);
  ASSERT_TRUE(worker.Complete(leased).ok());
  EXPECT_EQ(world.Get(campaign).stop_reason(), v1::STOP_REASON_MINUTES);
}

TEST(ServedTimeTest, SettingTheClockChangesNothing) {
  int set = 0, unchanged = 0;
  for (const absl::Duration by : {absl::Hours(24), -absl::Hours(24)}) {
    World world;
    const std::string campaign = world.Submit(Minutes(10));
    ScriptedWorker worker(world, "a");
    ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
    const v1::LeaseTrialResponse leased = worker.MustLease();
    world.Pass(absl::Seconds(6));
    world.SetClock(by);
    world.Pass(absl::Seconds(6));
    EXPECT_EQ(world->leases_out(), 1) << by;
    EXPECT_DOUBLE_EQ(world.Get(campaign).minutes(), 0.2) << by;
    ++set;
    unchanged += std::abs(world.Get(campaign).minutes() - 0.2) < 1e-9;
    EXPECT_TRUE(worker.Renew(leased.lease()).ok());
    world.Pass(absl::Seconds(14));
    EXPECT_EQ(world->leases_out(), 1) << by;
    world.Pass(absl::Seconds(1));
    EXPECT_EQ(world->leases_out(), 0) << "15 s after the renewal, " << by;
    EXPECT_EQ(worker.RunAll(), 4);
    EXPECT_EQ(world.Get(campaign).stop_reason(), v1::STOP_REASON_SPACE) << by;
  }
  ReportPromise(18, absl::StrCat("the clock was set ", set, " times, by a day forward or back: ", unchanged,
                                 " campaigns had the same minutes and leases"));
}

TEST(ServedTimeTest, AWaitForAProposalIsNotChangedByTheClock) {
  for (const absl::Duration by : {absl::Hours(24), -absl::Hours(24)}) {
    SCOPED_TRACE(by);
    World world;
    v1::CampaignSpec spec;
    spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
    spec.mutable_chooser()->set_no_proposal(v1::NO_PROPOSAL_PAUSE);
    spec.mutable_chooser()->set_wait_seconds(120);
    const std::string campaign = world.Submit(spec);
    ScriptedWorker worker(world, "a");
    ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
    world.Pass(absl::Seconds(60));
    world.SetClock(by);
    world.Restart();
    world.Pass(absl::Seconds(31));
    EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING) << "it has waited for 91 s";
    world.Pass(absl::Seconds(30));
    EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED) << "it has waited for 121 s";
  }
}

TEST(ServedTimeTest, AVerificationIsGivenUpWhateverTheClockSays) {
  for (const absl::Duration by : {absl::Hours(24), -absl::Hours(24)}) {
    SCOPED_TRACE(by);
    World world;
    const std::string campaign = world.Submit();
    ScriptedWorker worker(world, "a");
    EXPECT_EQ(worker.RunAll(), 5);
    v1::VerifyIterationRequest request;
    request.set_name(campaign + "/iterations/0");
    ASSERT_TRUE(world->Verify(request).ok());
    world.Pass(absl::Seconds(30));
    world.SetClock(by);
    world.Restart();
    world.Pass(absl::Seconds(20));
    EXPECT_TRUE(world.Get(campaign).verifying()) << "50 s of 60";
    world.Pass(absl::Seconds(11));
    EXPECT_FALSE(world.Get(campaign).verifying()) << "61 s of 60";
  }
}

TEST(ServedTimeTest, ALeaseOfADeadWorkerEndsThoughTheServiceIsStartedAgainAndAgain) {
  World world;
  world.Submit();
  ScriptedWorker dead(world, "dead");
  ASSERT_TRUE(dead.Renew(dead.MustLease().lease()).ok());
  absl::Duration served;
  for (; world->leases_out() > 0 && served < absl::Minutes(5); served += absl::Seconds(5)) {
    world.RestartAfter(absl::Seconds(1));
    world.Pass(absl::Seconds(5));
  }
  EXPECT_EQ(world->leases_out(), 0);
  EXPECT_LE(served, absl::Seconds(30)) << "a lease, and one more for the first start";
  ReportPromise(19, absl::StrCat("a restart every 6 s: the dead lease ended after ", absl::FormatDuration(served)));
}

TEST(ServedTimeTest, ALeaseThatIsRenewedOutlivesAnyNumberOfStarts) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  for (int i = 0; i < 20; ++i) {
    world.RestartAfter(absl::Minutes(3));
    world.Pass(absl::Seconds(9));
    ASSERT_EQ(world->leases_out(), 1) << i;
    ASSERT_TRUE(worker.Renew(leased.lease()).ok()) << i;
    world.Pass(absl::Seconds(2));
  }
  EXPECT_TRUE(worker.Complete(leased).ok());
}

}  // namespace
}  // namespace pawl
