// Who may run what, for how long, and what happens when they are not heard of.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/space.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"
#include "tests/promises/soak.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using Answer = std::optional<absl::StatusOr<v1::LeaseTrialResponse>>;

Orchestrator::LeaseAnswer Into(Answer* answer) {
  return [answer](absl::StatusOr<v1::LeaseTrialResponse> got) {
    EXPECT_FALSE(answer->has_value()) << "answered twice";
    *answer = std::move(got);
  };
}

TEST(LeaseTest, LastsAsLongAsItIsRenewed) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a"), other(world, "b");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  for (int i = 0; i < 10; ++i) {
    world.Pass(absl::Seconds(10));
    const absl::StatusOr<v1::RenewLeaseResponse> renewed = worker.Renew(leased.lease());
    ASSERT_TRUE(renewed.ok()) << renewed.status();
    EXPECT_EQ(renewed->lease_seconds(), 15);
    EXPECT_FALSE(renewed->stop());
    EXPECT_FALSE(other.Lease()->has_trial());
  }
  world.Pass(absl::Seconds(14));
  EXPECT_EQ(world->leases_out(), 1);
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(world->leases_out(), 0);
  const v1::LeaseTrialResponse again = other.MustLease();
  EXPECT_EQ(again.trial().name(), leased.trial().name());
  EXPECT_EQ(again.trial().attempt(), 2);
  EXPECT_NE(again.lease(), leased.lease());
  ExpectError(worker.Renew(leased.lease()).status(), absl::StatusCode::kAborted, "ran out");
}

TEST(LeaseTest, MayBeRenewedLateWhileNobodyElseHasTheTrial) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Pass(absl::Seconds(16));
  const absl::StatusOr<v1::RenewLeaseResponse> renewed = worker.Renew(leased.lease());
  ASSERT_TRUE(renewed.ok()) << renewed.status();
  EXPECT_FALSE(renewed->stop());
  EXPECT_TRUE(worker.Complete(leased).ok());
}

TEST(LeaseTest, IsAdoptedAfterARestart) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Pass(absl::Seconds(14));
  world.Restart();
  EXPECT_EQ(world->leases_out(), 1);
  EXPECT_EQ(worker.Shown().trials_size(), 1);
  world.Pass(absl::Seconds(14));  // a whole lease to be heard of
  EXPECT_TRUE(worker.Renew(leased.lease()).ok());
  world.Restart();
  EXPECT_TRUE(worker.Complete(leased).ok()) << "the old worker may still deliver";
  EXPECT_EQ(static_cast<int>(world.Iterations(campaign).size()), 1);
  EXPECT_EQ(worker.RunAll(), 4);
}

TEST(LeaseTest, RunsOutAfterARestartWhenItsWorkerIsNotHeardOf) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  worker.MustLease();
  world.Restart();
  world.Pass(absl::Seconds(16));
  EXPECT_EQ(ScriptedWorker(world, "b").MustLease().trial().attempt(), 2);
}

TEST(LeaseTest, PutsATrialAsideWhenItHasCostThreeWorkersAndGoesOn) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (int lost = 1; lost <= 3; ++lost) {
    EXPECT_EQ(world.Iterations(campaign).size(), 1u) << "not before the third";
    const v1::LeaseTrialResponse leased = worker.MustLease();
    EXPECT_EQ(leased.trial().name(), campaign + "/trials/2");
    EXPECT_EQ(leased.trial().attempt(), lost);
    ASSERT_TRUE(worker.Renew(leased.lease()).ok()) << "it has begun";
    world.Pass(absl::Seconds(16));
    if (lost == 1) world.Restart();  // what was lost is not forgotten
  }
  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 2u);
  EXPECT_EQ(iterations[1].verdict(), v1::REJECTED);
  EXPECT_THAT(iterations[1].reason(), HasSubstr("3 workers were lost"));
  EXPECT_EQ(worker.MustLease().trial().name(), campaign + "/trials/3");
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
}

TEST(LeaseTest, CountsAsBegunWhenItCameWithTheAnswerToAResult) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease(), NothingHelps, /*lease_next=*/true)->has_next());
  world.Pass(absl::Seconds(16));
  const std::vector<v1::Event> lost = world.Events(campaign, v1::Event::kLost);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].lost().reason(), v1::LeaseLost::EXPIRED) << "its worker was there when it got it";
}

// Ticks as often as the service does.
void PassInTicks(World& world, absl::Duration time) {
  for (absl::Duration passed; passed < time; passed += absl::Milliseconds(200)) world.Pass(absl::Milliseconds(200));
}

// A call that waits for the next trial is heard of later than the last renewal of the trial that kills the worker.
TEST(LeaseTest, PutsATrialAsideThoughItsWorkersWereWaitingForAnotherWhenTheyDied) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (int lost = 1; lost <= 3; ++lost) {
    const v1::LeaseTrialResponse leased = worker.MustLease();
    EXPECT_EQ(leased.trial().name(), campaign + "/trials/2");
    ASSERT_TRUE(worker.Renew(leased.lease()).ok());
    Answer answer;
    const uint64_t waiting = worker.Wait(60, Into(&answer));
    PassInTicks(world, absl::Seconds(4));
    world->Forget(waiting);  // its connection breaks
    PassInTicks(world, absl::Seconds(16));
    EXPECT_FALSE(answer);
  }
  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 2u);
  EXPECT_EQ(iterations[1].verdict(), v1::REJECTED);
  EXPECT_THAT(iterations[1].reason(), HasSubstr("3 workers were lost"));
}

// So is a renewal of another trial that the same worker holds.
TEST(LeaseTest, PutsATrialAsideThoughItsWorkersRenewedAnotherLater) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  for (int lost = 1; lost <= 3; ++lost) {
    const v1::LeaseTrialResponse deadly = worker.MustLease();
    EXPECT_EQ(deadly.trial().name(), campaign + "/trials/2");
    const std::string other = world.Submit();
    const v1::LeaseTrialResponse sibling = worker.MustLease();
    ASSERT_TRUE(worker.Renew(deadly.lease()).ok());
    PassInTicks(world, absl::Seconds(4));
    ASSERT_TRUE(worker.Renew(sibling.lease()).ok());
    PassInTicks(world, absl::Seconds(20));
    EXPECT_EQ(world->leases_out(), 0);
    v1::CancelCampaignRequest cancel;
    cancel.set_name(other);
    ASSERT_TRUE(world->Cancel(cancel).ok());
  }
  ASSERT_EQ(world.Iterations(campaign).size(), 2u);
  EXPECT_EQ(world.Iterations(campaign)[1].verdict(), v1::REJECTED);
}

TEST(LeaseTest, IsHeldAgainstNoTrialWhileItsWorkerIsThere) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Renew(worker.MustLease().lease()).ok());
  Answer answer;
  EXPECT_NE(worker.Wait(60, Into(&answer)), 0u);
  PassInTicks(world, absl::Seconds(15));
  const std::vector<v1::Event> lost = world.Events(campaign, v1::Event::kLost);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].lost().reason(), v1::LeaseLost::GIVEN_BACK);
  EXPECT_TRUE(answer) << "it is offered again";
}

// How many leases the campaign lost to workers that had renewed them; the others were lost to frozen ones.
int CountStrikes(World& world, const std::string& campaign) {
  int strikes = 0;
  for (const v1::Event& lost : world.Events(campaign, v1::Event::kLost)) {
    strikes += lost.lost().reason() != v1::LeaseLost::NOT_RENEWED;
  }
  return strikes;
}

TEST(LeaseTest, IsHeldAgainstNoTrialWhenItsWorkerNeverRenewed) {
  int lost = 0, strikes = 0, finished = 0;
  const int campaigns = SoakCount(1, 50);
  for (int round = 0; round < campaigns; ++round) {
    World world;
    std::vector<std::unique_ptr<ScriptedWorker>> frozen;
    Answer answers[3];
    for (int i = 0; i < 3; ++i) {  // stopped while each waits for a trial: their connections stay
      frozen.push_back(std::make_unique<ScriptedWorker>(world, "frozen-" + std::to_string(i)));
      frozen.back()->Wait(60, Into(&answers[i]));
    }
    const std::string campaign = world.Submit();
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(answers[i] && answers[i]->ok() && (*answers[i])->has_trial()) << i;
      world.Pass(absl::Seconds(16));
    }
    ASSERT_EQ(world.Events(campaign, v1::Event::kLost).size(), 3u);
    lost += 3;
    strikes += CountStrikes(world, campaign);
    EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
    EXPECT_TRUE(world.Iterations(campaign).empty());
    EXPECT_EQ(ScriptedWorker(world, "healthy").RunAll(), 5);
    finished += world.Get(campaign).state() == v1::FINISHED;
  }
  EXPECT_EQ(strikes, 0);
  EXPECT_EQ(finished, campaigns);
  ReportPromise(15, absl::StrCat(lost, " workers stopped while each waited for a trial: ", strikes, " strikes, ",
                                 finished, " of ", campaigns, " campaigns finished"));
}

TEST(LeaseTest, GoesToAWorkerThatNeverRenewedOnlyWhenNobodyElseWaits) {
  World world;
  world.Submit();
  ScriptedWorker silent(world, "silent"), other(world, "other");
  silent.MustLease();
  world.Pass(absl::Seconds(16));
  Answer first, second;
  ASSERT_TRUE(other.Complete(other.MustLease(), EverythingHelps).ok());
  const v1::LeaseTrialResponse held = other.MustLease();
  EXPECT_NE(silent.Wait(60, Into(&first)), 0u);
  EXPECT_NE(other.Wait(60, Into(&second)), 0u);
  world.Submit();
  EXPECT_FALSE(first) << "though it waited longer";
  ASSERT_TRUE(second && second->ok());
  world.Submit();
  ASSERT_TRUE(first && first->ok()) << "nobody else waits";
  ASSERT_TRUE(silent.Renew((*first)->lease()).ok());
  ASSERT_TRUE(silent.Complete(**first).ok());
}

TEST(LeaseTest, PausesACampaignWhoseStartHasCostThreeWorkers) {
  World world;
  const std::string campaign = world.Submit();
  for (int lost = 1; lost <= 3; ++lost) {
    EXPECT_NE(world.Get(campaign).state(), v1::PAUSED) << "not before the third";
    ScriptedWorker worker(world, "w" + std::to_string(lost));
    ASSERT_TRUE(worker.Renew(worker.MustLease().lease()).ok());
    world.Pass(absl::Seconds(16));
  }
  const v1::Campaign paused = world.Get(campaign);
  EXPECT_EQ(paused.state(), v1::PAUSED);
  EXPECT_THAT(paused.message(), HasSubstr("3 workers were lost while they ran the start variant"));
  EXPECT_THAT(paused.message(), HasSubstr("workers/w3"));
  EXPECT_THAT(paused.message(), HasSubstr("pawl resume"));
  EXPECT_TRUE(world.Iterations(campaign).empty());
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  ScriptedWorker healthy(world, "healthy");
  ASSERT_TRUE(healthy.GiveBack(healthy.MustLease().lease()).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING) << "only another lost worker pauses it again";
  EXPECT_EQ(healthy.RunAll(), 5);
  EXPECT_EQ(world.Get(campaign).state(), v1::FINISHED);
}

// A node whose disk is full costs nobody else's campaign its attempts.
TEST(LeaseTest, LeavesATrialThatAMachineCouldNotRunToOthers) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker full(world, "a"), other(world, "b");
  ASSERT_TRUE(full.HostFault(full.MustLease().lease(), "no space is left on /tmp").ok());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(full.Lease()->has_trial()) << "the other is there";
  ASSERT_TRUE(other.Complete(other.MustLease()).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
  EXPECT_TRUE(full.Lease()->has_trial()) << "another trial";
  ScriptedWorker alone(world, "c", MadeDevice("NVIDIA L4"));
  v1::CampaignSpec spec;
  spec.set_gpu("l4");
  world.Submit(spec);
  ASSERT_TRUE(alone.HostFault(alone.MustLease().lease(), "no space is left on /tmp").ok());
  EXPECT_TRUE(alone.Lease()->has_trial()) << "nobody else can run it";
}

// As a worker measures that leaves compute-sanitizer for later.
Measure Unsanitized(const Measure& measure) {
  return [measure](const v1::Trial& trial) {
    v1::TrialResult result = measure(trial);
    result.set_sanitize_later(true);
    return result;
  };
}

// A campaign that is done but for compute-sanitizer, which has to run over these changes.
std::string ToBeSanitized(World& world, ScriptedWorker& worker, int changes = 1) {
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(changes);
  const std::string campaign = world.Submit(spec);
  EXPECT_TRUE(worker.Complete(worker.MustLease()).ok());
  const Measure faster = Unsanitized(EverythingHelps);
  for (int i = 0; i < changes; ++i) EXPECT_TRUE(worker.Complete(worker.MustLease(), faster).ok());
  EXPECT_EQ(world.Get(campaign).best(), changes);
  return campaign;
}

v1::Device WithSanitizer() {
  v1::Device device = MadeDevice();
  device.set_sanitizer(true);
  return device;
}

TEST(LeaseTest, LetsTheSanitizersTrialWaitForAWorkerThatHasIt) {
  World world;
  ScriptedWorker worker(world, "a", WithSanitizer());
  const std::string campaign = ToBeSanitized(world, worker);
  ASSERT_TRUE(worker.Drain(/*gone=*/true).ok());
  ScriptedWorker without(world, "b");
  EXPECT_FALSE(without.Lease()->has_trial());
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("it has no compute-sanitizer"));
  EXPECT_EQ(world.Get(campaign).waiting_for(), v1::WAITING_FOR_DEVICE);
  ScriptedWorker again(world, "c", WithSanitizer());
  EXPECT_EQ(again.MustLease().trial().purpose(), v1::TRIAL_PURPOSE_SANITIZE);
}

// A campaign that is done but for the measurement of its winner beside the start. `at_the_end`: it leaves
// compute-sanitizer to that.
std::string ToBeMeasuredBesideTheStart(World& world, ScriptedWorker& worker, bool at_the_end) {
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(1);
  spec.mutable_keep()->set_skip_sanitizer(at_the_end);
  const std::string campaign = world.Submit(spec);
  const Measure passes = [at_the_end](const v1::Trial& trial) {
    v1::TrialResult result = EverythingHelps(trial);
    result.mutable_toolchain()->set_compute_sanitizer("2025.3");
    result.set_sanitize_later(!at_the_end);
    if (trial.unsanitized().empty()) return result;
    result.Clear();
    for (const v1::UnsanitizedVariant& each : trial.unsanitized()) {
      result.add_sanitized_variants()->set_iteration(each.iteration());
    }
    return result;
  };
  for (int i = 0; i < (at_the_end ? 2 : 3); ++i) EXPECT_TRUE(worker.Complete(worker.MustLease(), passes).ok());
  EXPECT_EQ(world.Get(campaign).best(), 1);
  return campaign;
}

TEST(LeaseTest, LetsTheTotalWaitForAWorkerWithTheSanitizerWhereTheWinnerWasKeptByOne) {
  for (const bool at_the_end : {false, true}) {
    World world;
    ScriptedWorker worker(world, "a", WithSanitizer());
    const std::string campaign = ToBeMeasuredBesideTheStart(world, worker, at_the_end);
    ASSERT_TRUE(worker.Drain(/*gone=*/true).ok());
    ScriptedWorker without(world, "b");
    EXPECT_FALSE(without.Lease()->has_trial());
    EXPECT_THAT(world.Get(campaign).message(), HasSubstr("it has no compute-sanitizer"));
    ScriptedWorker again(world, "c", WithSanitizer());
    EXPECT_EQ(again.MustLease().trial().purpose(), v1::TRIAL_PURPOSE_TOTAL);
  }
}

v1::TrialResult StartFails(const v1::Trial& trial) {
  v1::TrialResult result;
  for (const v1::UnsanitizedVariant& each : trial.unsanitized()) {
    v1::SanitizedVariant& found = *result.add_sanitized_variants();
    found.set_iteration(each.iteration());
    if (each.iteration() > 0) continue;
    found.mutable_failure()->set_check(v1::CHECK_MEMCHECK);
    found.mutable_failure()->set_message("an invalid read");
  }
  return result;
}

TEST(LeaseTest, FailsACampaignWhoseStartTheSanitizerRejects) {
  World world;
  ScriptedWorker worker(world, "a", WithSanitizer());
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(1);
  const std::string campaign = world.Submit(spec);
  const Measure later = Unsanitized(EverythingHelps);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(worker.Complete(worker.MustLease(), later).ok());
  const v1::LeaseTrialResponse sanitizes = worker.MustLease();
  ASSERT_EQ(sanitizes.trial().purpose(), v1::TRIAL_PURPOSE_SANITIZE);
  ASSERT_EQ(sanitizes.trial().unsanitized_size(), 2);
  ASSERT_TRUE(worker.Complete(sanitizes, StartFails).ok());
  for (const bool restarted : {false, true}) {
    if (restarted) world.Restart();
    const v1::Campaign ended = world.Get(campaign);
    EXPECT_EQ(ended.state(), v1::FAILED);
    EXPECT_THAT(ended.message(), HasSubstr("an invalid read"));
    EXPECT_FALSE(ended.has_best());
    EXPECT_EQ(ended.speedup_over_start(), 0);
    for (const v1::Iteration& iteration : world.Iterations(campaign)) EXPECT_EQ(iteration.verdict(), v1::REJECTED);
    v1::GetSituationRequest situation;
    situation.set_campaign(campaign);
    EXPECT_FALSE(world->Situation(situation).value_or(v1::Situation()).has_best());
  }
}

TEST(LeaseTest, StopsTheTrialsThatAreOpenWhenTheStartIsRejected) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker sanitizer(world, "a", WithSanitizer()), other(world, "b", WithSanitizer());
  const Measure later = Unsanitized(EverythingHelps);
  v1::LeaseTrialResponse sanitizes = sanitizer.MustLease();
  while (sanitizes.trial().purpose() == v1::TRIAL_PURPOSE_ITERATION) {
    ASSERT_TRUE(sanitizer.Complete(sanitizes, later).ok());
    sanitizes = sanitizer.MustLease();
  }
  ASSERT_EQ(sanitizes.trial().purpose(), v1::TRIAL_PURPOSE_SANITIZE);
  const v1::LeaseTrialResponse open = other.MustLease();
  ASSERT_EQ(open.trial().purpose(), v1::TRIAL_PURPOSE_ITERATION);
  EXPECT_FALSE(other.Renew(open.lease())->stop());
  ASSERT_TRUE(sanitizer.Complete(sanitizes, StartFails).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::FAILED) << "it waits for nothing";
  EXPECT_TRUE(other.Renew(open.lease())->stop());
  EXPECT_EQ(other.Shown().trials_size(), 0);
  ExpectError(other.Complete(open, later).status(), absl::StatusCode::kAlreadyExists, "its campaign failed without it");
  world.Pass(absl::Seconds(60));
  world.Submit();
  EXPECT_TRUE(other.Lease().ok());
}

TEST(LeaseTest, GoesOnWithoutWhatCanNotBeSanitizedOnceItWasResumed) {
  World world;
  ScriptedWorker worker(world, "a", WithSanitizer());
  const std::string campaign = ToBeSanitized(world, worker, 2);
  const auto fail = [&] {
    return worker.HostFault(worker.MustLease().lease(), "compute-sanitizer died of signal 11").ok();
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(fail());
  ASSERT_EQ(world.Get(campaign).state(), v1::PAUSED) << "it may be the machine";
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("rejects the variants over which it fails again"));
  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  for (int i = 0; i < 1 + 2 * 3; ++i) ASSERT_TRUE(fail()) << "together once more, then each by itself";
  EXPECT_EQ(world.Get(campaign).state(), v1::FINISHED);
  for (const v1::Iteration& unchecked : world.Iterations(campaign)) {
    if (unchecked.number() == 0) continue;
    EXPECT_EQ(unchecked.verdict(), v1::REJECTED);
    EXPECT_THAT(unchecked.reason(), HasSubstr("compute-sanitizer died of signal 11"));
  }
}

TEST(LeaseTest, PausesWhereTheSanitizerCanNotRunOverTheStart) {
  for (const bool lost : {false, true}) {
    SCOPED_TRACE(lost ? "workers are lost" : "the tool fails");
    World world;
    v1::CampaignSpec spec;
    spec.mutable_budget()->set_iterations(1);
    const std::string campaign = world.Submit(spec);
    const Measure later = Unsanitized(NothingHelps);
    ScriptedWorker first(world, "a", WithSanitizer());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(first.Complete(first.MustLease(), later).ok());
    ASSERT_TRUE(first.Drain(/*gone=*/true).ok());
    const auto fail = [&](int number) {
      ScriptedWorker worker(world, absl::StrCat("b", number), WithSanitizer());
      const v1::LeaseTrialResponse leased = worker.MustLease();
      EXPECT_EQ(leased.trial().purpose(), v1::TRIAL_PURPOSE_SANITIZE);
      if (!lost) return worker.HostFault(leased.lease(), "compute-sanitizer died of signal 11").ok();
      const bool renewed = worker.Renew(leased.lease()).ok();
      world.Pass(absl::Seconds(60));
      return renewed;
    };
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(fail(i));
    ASSERT_EQ(world.Get(campaign).state(), v1::PAUSED);
    v1::ResumeCampaignRequest resume;
    resume.set_name(campaign);
    ASSERT_TRUE(world->Resume(resume).ok());
    ASSERT_TRUE(fail(3));
    EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED) << "nothing is lost that the next worker could clear";
    EXPECT_EQ(world.Get(campaign).best(), 0);
  }
}

TEST(LeaseTest, PausesACampaignAfterThreeHostFaultsOfOneTrial) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  for (int i = 0; i < 3; ++i) {
    EXPECT_NE(world.Get(campaign).state(), v1::PAUSED);
    // Two of the GPU's would make the worker sick.
    ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "the disk fell off the bus", /*gpu=*/i == 0).ok());
  }
  const v1::Campaign paused = world.Get(campaign);
  EXPECT_EQ(paused.state(), v1::PAUSED);
  EXPECT_THAT(paused.message(), HasSubstr("the disk fell off the bus"));
  EXPECT_THAT(paused.message(), HasSubstr("workers/a"));
  EXPECT_EQ(worker.Shown().host_faults(), 1);
  EXPECT_TRUE(world.Iterations(campaign).empty()) << "nothing is held against the candidate";

  v1::ResumeCampaignRequest resume;
  resume.set_name(campaign);
  ASSERT_TRUE(world->Resume(resume).ok());
  ASSERT_TRUE(worker.GiveBack(worker.MustLease().lease()).ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING) << "giving back is no fault";
  worker.MustLease();
  world.Pass(absl::Seconds(16));
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING) << "nor is being lost";
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), "again").ok());
  EXPECT_EQ(world.Get(campaign).state(), v1::PAUSED);
}

TEST(LeaseTest, SurvivesAHostFaultWithALongMessageInAnyLanguage) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  std::string message = "x";
  while (message.size() < 5000) message += "\xe2\x82\xac";  // a euro sign: three bytes
  ASSERT_TRUE(worker.HostFault(worker.MustLease().lease(), message).ok());
  world.Restart();
  const std::vector<v1::Event> lost = world.Events(campaign, v1::Event::kLost);
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_LE(lost[0].lost().message().size(), 2000u);
  EXPECT_GT(lost[0].lost().message().size(), 1990u);
  EXPECT_EQ(worker.RunAll(), 5);
}

TEST(LeaseTest, GivenBackIsLeasedAgainAtOnceAndHeldAgainstNobody) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  for (int i = 1; i <= 5; ++i) {
    const v1::LeaseTrialResponse leased = worker.MustLease();
    EXPECT_EQ(leased.trial().attempt(), i);
    ASSERT_TRUE(worker.GiveBack(leased.lease()).ok());
  }
  EXPECT_EQ(world.Get(campaign).state(), v1::RUNNING);
  EXPECT_TRUE(worker.Complete(worker.MustLease()).ok());
}

TEST(LongPollTest, IsAnsweredByALaterSubmission) {
  World world;
  ScriptedWorker worker(world, "a");
  Answer answer;
  EXPECT_NE(worker.Wait(60, Into(&answer)), 0u);
  world.Pass(absl::Seconds(20));
  EXPECT_FALSE(answer);
  EXPECT_EQ(worker.Shown(/*gone_too=*/false).state(), v1::WORKER_STATE_IDLE) << "waiting is being there";
  world.Submit();
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->trial().name(), "campaigns/1/trials/1");
  EXPECT_TRUE(worker.Complete(**answer).ok());
}

TEST(LongPollTest, IsAnsweredByATrialThatAnotherLost) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a"), other(world, "b");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  Answer answer;
  other.Wait(60, Into(&answer));
  world.Pass(absl::Seconds(16));
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_EQ((*answer)->trial().name(), leased.trial().name());
}

TEST(LongPollTest, EndsEmptyAfterItsTime) {
  World world;
  ScriptedWorker worker(world, "a");
  Answer answer;
  worker.Wait(30, Into(&answer));
  world.Pass(absl::Seconds(29));
  EXPECT_FALSE(answer);
  world.Pass(absl::Seconds(1));
  ASSERT_TRUE(answer && answer->ok());
  EXPECT_FALSE((*answer)->has_trial());
  world.Submit();
  EXPECT_EQ(world->leases_out(), 0);
}

TEST(LongPollTest, IsNotAnsweredOnceForgotten) {
  World world;
  ScriptedWorker worker(world, "a");
  Answer answer;
  world->Forget(worker.Wait(30, Into(&answer)));
  world.Submit();
  world.Pass(absl::Seconds(31));
  EXPECT_FALSE(answer);
  EXPECT_EQ(world->leases_out(), 0);
  world->Forget(12345);
}

TEST(LongPollTest, ServesTheOneWhoWaitedLongest) {
  World world;
  ScriptedWorker first(world, "a"), second(world, "b");
  Answer a, b;
  second.Wait(60, Into(&b));
  first.Wait(60, Into(&a));
  world.Submit();
  EXPECT_TRUE(b);
  EXPECT_FALSE(a);
}

TEST(LongPollTest, AsksEveryoneWhoWaitsThoughTheirLabelsAreTheSame) {
  World world;
  v1::Device device = MadeDevice("replay of an NVIDIA H200", v1::DEVICE_KIND_REPLAY);
  device.add_bundle_hashes("of another bundle");
  ScriptedWorker without(world, "a", device);
  device.add_bundle_hashes(BundleHash(TinyBundle()));
  ScriptedWorker with(world, "b", device);
  Answer a, b;
  without.Wait(60, Into(&a));
  with.Wait(60, Into(&b));
  world.Submit();
  EXPECT_FALSE(a);
  EXPECT_TRUE(b);
}

TEST(LongPollTest, RefusesATimeThatIsNone) {
  World world;
  ScriptedWorker worker(world, "a");
  for (double seconds : {-1.0, 61.0, std::numeric_limits<double>::quiet_NaN()}) {
    Answer answer;
    EXPECT_EQ(worker.Wait(seconds, Into(&answer)), 0u);
    ASSERT_TRUE(answer);
    ExpectError(answer->status(), absl::StatusCode::kInvalidArgument, "wait_seconds");
  }
}

TEST(LongPollTest, IsSentAwayWhenTheOrchestratorStops) {
  World world;
  ScriptedWorker worker(world, "a");
  Answer answer;
  worker.Wait(60, Into(&answer));
  world->StopLeasing();
  ASSERT_TRUE(answer);
  ExpectError(answer->status(), absl::StatusCode::kUnavailable, "shuts down");
  ExpectError(worker.Lease().status(), absl::StatusCode::kUnavailable, "shuts down");
  v1::SubmitCampaignRequest submit;
  *submit.mutable_bundle() = TinyBundle();
  ExpectError(world->Submit(submit).status(), absl::StatusCode::kUnavailable, "shuts down");
}

TEST(WorkersTest, DrainAndGo) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  Answer answer;
  worker.Wait(60, Into(&answer));
  ASSERT_TRUE(worker.Drain(/*gone=*/false).ok());
  EXPECT_TRUE(answer) << "it does not wait any longer";
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_DRAINING);
  ExpectError(worker.Lease().status(), absl::StatusCode::kFailedPrecondition, "draining");
  const absl::StatusOr<v1::CompleteTrialResponse> completed = worker.Complete(leased, NothingHelps, true);
  ASSERT_TRUE(completed.ok()) << "what it holds still counts";
  EXPECT_FALSE(completed->next().has_trial());
  ASSERT_TRUE(worker.Drain(/*gone=*/true).ok());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_GONE);
  EXPECT_EQ(worker.Shown(/*gone_too=*/false).name(), "");
  ExpectError(worker.Lease().status(), absl::StatusCode::kNotFound, "workers/a");
  ExpectError(worker.Drain(/*gone=*/true), absl::StatusCode::kNotFound, "workers/a");
  world.Restart();
  EXPECT_EQ(worker.Shown(/*gone_too=*/false).name(), "") << "gone for good";
  EXPECT_TRUE(worker.Register().ok());
  EXPECT_TRUE(worker.Lease()->has_trial());
}

TEST(WorkersTest, LeaveTheirTrialsToOthersWhenTheyGo) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a"), other(world, "b");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  Answer answer;
  other.Wait(60, Into(&answer));
  ASSERT_TRUE(worker.Drain(/*gone=*/true).ok());
  ASSERT_TRUE(answer && answer->ok()) << "at once";
  EXPECT_EQ((*answer)->trial().name(), leased.trial().name());
  EXPECT_EQ(world.Events(campaign, v1::Event::kLost)[0].lost().reason(), v1::LeaseLost::GIVEN_BACK);
}

absl::Status TryRegister(World& world, const std::string& name, const std::string& instance) {
  v1::RegisterWorkerRequest request;
  request.set_name(name);
  request.set_instance(instance);
  *request.mutable_device() = MadeDevice();
  request.set_protocol(v1::WorkerProtocol_MAX);
  return world->Register(request).status();
}

TEST(WorkersTest, HaveOneNameEach) {
  World world;
  ScriptedWorker worker(world, "a");
  const absl::Status taken = TryRegister(world, "workers/a", "two");
  ExpectError(taken, absl::StatusCode::kAlreadyExists, "workers/a");
  EXPECT_EQ(DetailOf(taken).retry_after_seconds(), 15);
  EXPECT_TRUE(TryRegister(world, "workers/a", "one").ok()) << "the same process again is an update";
  EXPECT_TRUE(TryRegister(world, "workers/b", "two").ok());
  world.Restart();
  ExpectError(TryRegister(world, "workers/a", "two"), absl::StatusCode::kUnavailable, "workers/a");
}

// The worker died, a new process has its name, and the orchestrator is started again and again: the new one must not
// give up.
TEST(WorkersTest, WaitForTheirNameAfterAStartUntilItsLastOwnerIsHeardOfOrGone) {
  World world;
  ScriptedWorker old(world, "a");
  EXPECT_EQ(TryRegister(world, "workers/a", "two").code(), absl::StatusCode::kAlreadyExists);
  for (int restarts = 0; restarts < 5; ++restarts) {
    world.Restart();
    EXPECT_EQ(TryRegister(world, "workers/a", "two").code(), absl::StatusCode::kUnavailable) << "nobody knows";
    world.Pass(absl::Seconds(10));
  }
  ASSERT_TRUE(old.Lease().ok());
  EXPECT_EQ(TryRegister(world, "workers/a", "two").code(), absl::StatusCode::kAlreadyExists) << "it is there";
  world.Pass(absl::Seconds(16));
  EXPECT_TRUE(TryRegister(world, "workers/a", "two").ok());
}

TEST(WorkersTest, LoseTheirNameWhenTheyAreSilentForALease) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Pass(absl::Seconds(15));
  ExpectError(TryRegister(world, "workers/a", "two"), absl::StatusCode::kAlreadyExists, "workers/a");
  world.Pass(absl::Seconds(1));
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_GONE);
  ScriptedWorker second(world, "a", MadeDevice(), "two");
  ExpectError(worker.Lease().status(), absl::StatusCode::kNotFound, "workers/a");
  ExpectError(worker.Renew(leased.lease()).status(), absl::StatusCode::kNotFound, "workers/a");
  ExpectError(worker.Complete(leased).status(), absl::StatusCode::kNotFound, "workers/a");
  EXPECT_EQ(second.MustLease().trial().attempt(), 2);
  EXPECT_EQ(second.Shown().trials_size(), 1);
}

TEST(WorkersTest, LeaveWhatTheyHeldToBeCountedAsLostWhenAnotherTakesTheirName) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker first(world, "first");
  ASSERT_TRUE(first.Complete(first.MustLease()).ok());
  for (int lost = 1; lost <= 3; ++lost) {  // the trial kills its worker, and something starts it again
    ScriptedWorker worker(world, "a", MadeDevice(), std::to_string(lost));
    const v1::LeaseTrialResponse leased = worker.MustLease();
    EXPECT_EQ(leased.trial().attempt(), lost);
    ASSERT_TRUE(worker.Renew(leased.lease()).ok());
    world.Advance(absl::Seconds(16));  // before the orchestrator looks for leases that ran out
  }
  ScriptedWorker worker(world, "a", MadeDevice(), "the last");
  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 2u);
  EXPECT_THAT(iterations[1].reason(), HasSubstr("3 workers were lost"));
  EXPECT_EQ(world->leases_out(), 0);
}

TEST(WorkersTest, AreNotHeldDeadForAnAnswerThatTheyNeverGot) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  for (int i = 0; i < 4; ++i) {
    worker.MustLease();  // and the answer is lost
    Answer answer;
    const uint64_t waiting = worker.Wait(60, Into(&answer));
    world.Pass(absl::Seconds(10));
    world.Pass(absl::Seconds(6));
    ASSERT_TRUE(answer && answer->ok() && (*answer)->has_trial()) << waiting;
    ASSERT_TRUE(worker.GiveBack((*answer)->lease()).ok());
  }
  EXPECT_TRUE(world.Iterations(campaign).empty()) << "nobody died of it";
  EXPECT_EQ(worker.RunAll(), 5);
}

TEST(WorkersTest, KeepTheirTrialsWhenTheyRegisterAgain) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  ASSERT_TRUE(worker.Register().ok());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_BUSY);
  EXPECT_TRUE(worker.Renew(leased.lease()).ok());
  world.Restart();
  EXPECT_EQ(worker.Shown().trials_size(), 1);
  ASSERT_TRUE(worker.Complete(leased).ok());
  EXPECT_EQ(worker.Shown().trials_size(), 0);
  world.Restart();
  EXPECT_EQ(worker.Shown().trials_size(), 0) << "what it held when it registered is long done";
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_IDLE);
}

TEST(WorkersTest, AreForgottenAtAStartLongAfterTheyWereHeardOf) {
  World world;
  world.Submit();
  ScriptedWorker gone(world, "gone"), silent(world, "silent"), busy(world, "busy"), drained(world, "drained");
  ASSERT_TRUE(gone.Drain(true).ok());
  busy.MustLease();
  world.Advance(absl::Hours(24 * 6));
  ScriptedWorker recent(world, "recent");
  ASSERT_TRUE(drained.Drain(true).ok());
  world.Advance(absl::Hours(24 * 2));
  world.Restart();
  EXPECT_EQ(world.store().Workers()->size(), 3u);
  for (ScriptedWorker* worker : {&gone, &silent}) EXPECT_EQ(worker->Shown().name(), "") << worker->name();
  for (ScriptedWorker* worker : {&busy, &recent, &drained}) EXPECT_EQ(worker->Shown().name(), worker->name());
  ExpectError(silent.Lease().status(), absl::StatusCode::kNotFound, "workers/silent");
  EXPECT_TRUE(silent.Register().ok()) << "it was there after all";
  EXPECT_TRUE(silent.Lease().ok());
}

TEST(WorkersTest, MustSayWhoAndWhatTheyAre) {
  World world;
  const auto bad = absl::StatusCode::kInvalidArgument;
  for (const std::string& name : {std::string(), std::string("a"), std::string("workers/"), std::string("workers/a b"),
                                  std::string("workers/a/b"), "workers/" + std::string(101, 'a')}) {
    ExpectError(TryRegister(world, name, "one"), bad, "name");
  }
  ExpectError(TryRegister(world, "workers/a", ""), bad, "instance");
  ExpectError(TryRegister(world, "workers/a", std::string(101, 'a')), bad, "instance");
  v1::RegisterWorkerRequest request;
  request.set_name("workers/a");
  request.set_instance("one");
  ExpectError(world->Register(request).status(), bad, "device");
  request.mutable_device()->set_kind(v1::DEVICE_KIND_CUDA);
  ExpectError(world->Register(request).status(), bad, "device");
}

TEST(WorkersTest, SpeakTheOrchestratorsProtocol) {
  World world;
  v1::RegisterWorkerRequest request;
  request.set_name("workers/a");
  request.set_instance("one");
  *request.mutable_device() = MadeDevice();
  request.set_version("9.8.7");
  int refused = 0;
  for (const int other : {0, v1::WorkerProtocol_MAX + 1}) {
    request.set_protocol(static_cast<v1::WorkerProtocol>(other));
    const absl::Status status = world->Register(request).status();
    ExpectError(status, absl::StatusCode::kFailedPrecondition, "workers/a is Pawl 9.8.7 with worker protocol");
    ExpectError(status, absl::StatusCode::kFailedPrecondition, "this orchestrator is Pawl ");
    refused += absl::IsFailedPrecondition(status);
  }
  request.set_protocol(v1::WorkerProtocol_MAX);
  EXPECT_TRUE(world->Register(request).ok()) << "another version that speaks the same is welcome";
  ReportPromise(22, absl::StrCat(refused, " workers of another protocol were refused by name"));
}

TEST(WorkersTest, RegisterAgainWithAnOrchestratorOfAnotherProtocol) {
  World world;
  world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Restart();
  EXPECT_TRUE(worker.Renew(leased.lease()).ok()) << "of the same protocol";
  world.RestartAfter([&] {  // one of an earlier protocol, by which the worker is registered
    const absl::StatusOr<std::unique_ptr<Store>> store = Store::Open({.file = world.file()});
    ASSERT_TRUE(store.ok()) << store.status();
    ASSERT_TRUE((*store)->NoteWorkerProtocol(v1::WorkerProtocol_MAX - 1).ok());
  });
  for (const bool restarted : {false, true}) {
    if (restarted) world.Restart();
    ExpectError(worker.Renew(leased.lease()).status(), absl::StatusCode::kNotFound, "workers/a");
    ExpectError(worker.Lease().status(), absl::StatusCode::kNotFound, "workers/a");
  }
  ASSERT_TRUE(worker.Register().ok()) << "it speaks this one as well";
  const absl::Status delivered = worker.Complete(leased).status();
  EXPECT_TRUE(delivered.ok()) << delivered;
}

TEST(WorkersTest, AreListedNewestFirst) {
  World world;
  ScriptedWorker first(world, "z");
  world.Pass(absl::Seconds(1));
  ScriptedWorker second(world, "a");
  const absl::StatusOr<v1::ListWorkersResponse> list = world->Workers({});
  ASSERT_EQ(list->workers_size(), 2);
  EXPECT_EQ(list->workers(0).name(), "workers/a");
  EXPECT_EQ(list->workers(0).version(), "1.2.3");
  EXPECT_EQ(list->workers(1).device().label(), "NVIDIA H200");
}

TEST(DeviceTest, StaysTheOneThatTheCampaignBeganOn) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker h200(world, "h200"), l4(world, "l4", MadeDevice("NVIDIA L4"));
  ASSERT_TRUE(h200.Complete(h200.MustLease()).ok());
  EXPECT_FALSE(l4.Lease()->has_trial());
  world.Restart();
  EXPECT_FALSE(l4.Lease()->has_trial());
  EXPECT_EQ(world.Get(campaign).message(), "") << "the other could take it";
  ASSERT_TRUE(h200.Drain(true).ok());
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("workers/l4 (NVIDIA L4): it began on NVIDIA H200"));
  EXPECT_TRUE(ScriptedWorker(world, "another").Lease()->has_trial());
}

TEST(DeviceTest, IsTheOneThatTheCampaignAsksFor) {
  World world;
  v1::CampaignSpec spec;
  spec.set_gpu("l4");
  const std::string campaign = world.Submit(spec);
  EXPECT_EQ(world.Get(campaign).message(), "no worker is registered: start pawl-worker");
  ScriptedWorker h200(world, "h200");
  EXPECT_FALSE(h200.Lease()->has_trial());
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("it asks for a GPU named l4"));
  ScriptedWorker l4(world, "l4", MadeDevice("NVIDIA L4"));
  EXPECT_EQ(world.Get(campaign).message(), "");
  EXPECT_TRUE(l4.Lease()->has_trial());
}

TEST(DeviceTest, ReplaysOnlyWhatWasRecorded) {
  World world;
  const std::string campaign = world.Submit();
  v1::Device device = MadeDevice("replay of an NVIDIA H200", v1::DEVICE_KIND_REPLAY);
  device.add_bundle_hashes("of another bundle");
  ScriptedWorker other(world, "other", device);
  EXPECT_FALSE(other.Lease()->has_trial());
  EXPECT_EQ(world.Get(campaign).state(), v1::WAITING);
  EXPECT_EQ(world.Get(campaign).message(),
            "no worker can take it: workers/other (replay of an NVIDIA H200): there is no recording of this tiny (pawl "
            "record makes one on a GPU)");
  device.add_bundle_hashes(BundleHash(TinyBundle()) + "@another");
  ScriptedWorker at_another(world, "at-another", device);
  EXPECT_FALSE(at_another.Lease()->has_trial());
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("there is no recording of this tiny at size " +
                                                       TinyBundle().goal().size() + ", only at another"));
  device.add_bundle_hashes(BundleHash(TinyBundle()) + "@" + TinyBundle().goal().size());
  ScriptedWorker replay(world, "replay", device);
  EXPECT_EQ(world.Get(campaign).message(), "");
  EXPECT_EQ(replay.RunAll(), 5);
  EXPECT_EQ(world.Get(campaign).device(), "replay of an NVIDIA H200");
  EXPECT_EQ(world.Get(campaign).dollars(), 0) << "a replay costs nothing";
}

TEST(DeviceTest, ReplaysAGoalOverSeveralSizesWhereEachWasRecorded) {
  World world;
  v1::CampaignSpec spec;
  (*spec.mutable_goal()->mutable_sizes())["small"] = 0.5;
  (*spec.mutable_goal()->mutable_sizes())["main"] = 0.5;
  const std::string campaign = world.Submit(spec);
  v1::Device device = MadeDevice("replay of an NVIDIA H200", v1::DEVICE_KIND_REPLAY);
  device.add_bundle_hashes(BundleHash(TinyBundle()) + "@main");
  ScriptedWorker one(world, "one", device);
  EXPECT_FALSE(one.Lease()->has_trial());
  EXPECT_THAT(world.Get(campaign).message(),
              HasSubstr("there is no recording of this tiny at size small, only at main"));
  device.add_bundle_hashes(BundleHash(TinyBundle()) + "@small");
  ScriptedWorker both(world, "both", device);
  EXPECT_TRUE(both.Lease()->has_trial());
}

}  // namespace
}  // namespace pawl
