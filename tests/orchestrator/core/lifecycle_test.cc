// The life of a campaign, from its submission to its end and beyond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/space.h"
#include "orchestrator/engine/state/campaign_states.h"
#include "tests/orchestrator/scripted_worker.h"
#include "tests/orchestrator/world.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<v1::Campaign> Pause(World& world, const std::string& name) {
  v1::PauseCampaignRequest request;
  request.set_name(name);
  request.set_reason("lunch");
  request.set_author("ann");
  return world->Pause(request);
}

absl::StatusOr<v1::Campaign> Resume(World& world, const std::string& name) {
  v1::ResumeCampaignRequest request;
  request.set_name(name);
  return world->Resume(request);
}

absl::StatusOr<v1::Campaign> Cancel(World& world, const std::string& name) {
  v1::CancelCampaignRequest request;
  request.set_name(name);
  request.set_reason("it was the wrong kernel");
  return world->Cancel(request);
}

absl::StatusOr<v1::VerifyIterationResponse> Verify(World& world, const std::string& name) {
  v1::VerifyIterationRequest request;
  request.set_name(name);
  return world->Verify(request);
}

absl::StatusOr<v1::ProposeChangeResponse> Propose(World& world, const std::string& campaign,
                                                  const std::string& variable, int to,
                                                  const std::string& author = "ann") {
  v1::ProposeChangeRequest request;
  request.set_campaign(campaign);
  request.mutable_change()->set_variable(variable);
  request.mutable_change()->set_to(to);
  request.set_author(author);
  return world->Propose(request);
}

TEST(LifecycleTest, RunsFromSubmissionToTheEndOfTheSpace) {
  World world;
  const std::string campaign = world.Submit();
  EXPECT_EQ(campaign, "campaigns/1");
  EXPECT_EQ(world.Get(campaign).state(), v1::WAITING);
  ScriptedWorker worker(world, "a");
  EXPECT_EQ(worker.RunAll(), 5) << "the start and four neighbours";
  const v1::Campaign ended = world.Get(campaign);
  EXPECT_EQ(ended.state(), v1::FINISHED);
  EXPECT_EQ(ended.stop_reason(), v1::STOP_REASON_SPACE);
  EXPECT_EQ(ended.counts().tried(), 4);
  EXPECT_EQ(ended.counts().kept(), 0);
  EXPECT_EQ(ended.counts().reverted(), 4);
  EXPECT_EQ(ended.device(), "NVIDIA H200");
  const std::vector<v1::Iteration> iterations = world.Iterations(campaign);
  ASSERT_EQ(iterations.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(iterations[i].number(), i);
  EXPECT_EQ(iterations[1].worker(), "workers/a");
  const std::vector<v1::Event> events = world.Events(campaign);
  ASSERT_EQ(events.size(), 17u) << "submitted; planned, leased and finished five times; ended";
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
  EXPECT_EQ(ended.last_sequence(), 17);
  EXPECT_EQ(worker.Shown().completed(), 5);
  EXPECT_EQ(worker.Shown().trials_size(), 0);
}

TEST(LifecycleTest, SaysOfWhatHasEndedNotToWaitForItsBest) {
  World world;
  v1::GetBestVariantRequest request;
  request.set_campaign(world.Submit());
  EXPECT_THAT(DetailOf(world.history().GetBestVariant(request).status()).fix(), HasSubstr("wait for iteration 0"));
  ASSERT_TRUE(Cancel(world, request.campaign()).ok());
  EXPECT_EQ(DetailOf(world.history().GetBestVariant(request).status()).fix(), "pawl show says why it ended");
}

TEST(LifecycleTest, ClimbsFromKeptToKept) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker(world, "a").RunAll(EverythingHelps);
  const v1::Campaign ended = world.Get(campaign);
  EXPECT_GT(ended.counts().kept(), 1);
  EXPECT_GT(ended.speedup_over_start(), 1.2);
  v1::GetBestVariantRequest request;
  request.set_campaign(campaign);
  const absl::StatusOr<v1::BestVariant> best = world.history().GetBestVariant(request);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->iteration().number(), ended.best());
  EXPECT_EQ(best->iteration().pairs_size(), 12);
  EXPECT_EQ(best->bundle().name(), "tiny");
}

TEST(LifecycleTest, TellsAWorkerEverythingAboutATrial) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse start = worker.MustLease();
  EXPECT_EQ(start.trial().name(), "campaigns/1/trials/1");
  EXPECT_EQ(start.trial().iteration(), "campaigns/1/iterations/0");
  EXPECT_EQ(start.trial().purpose(), v1::TRIAL_PURPOSE_ITERATION);
  EXPECT_FALSE(start.trial().has_parent());
  EXPECT_EQ(start.trial().size(), "main");
  EXPECT_EQ(start.trial().attempt(), 1);
  EXPECT_NE(start.trial().seed(), 0u);
  v1::GetBundleRequest bundle;
  bundle.set_hash(start.trial().bundle_hash());
  EXPECT_EQ(world.history().GetBundle(bundle)->name(), "tiny");
  const v1::LeaseTrialResponse next = worker.Complete(start, NothingHelps, /*lease_next=*/true)->next();
  ASSERT_TRUE(next.has_trial());
  EXPECT_EQ(VariantText(next.trial().parent()), "SPLIT=1 TILE=32");
  EXPECT_EQ(VariantText(next.trial().variant()), "SPLIT=1 TILE=64");
  EXPECT_EQ(next.trial().parent_us(), 100);
}

TEST(LifecycleTest, FailsWithTheStart) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker(world, "a").RunAll([](const v1::Trial&) { return FailedCheck(v1::CHECK_COMPILE, "no semicolon"); });
  EXPECT_EQ(world.Get(campaign).state(), v1::FAILED);
  EXPECT_THAT(world.Get(campaign).message(), HasSubstr("no semicolon"));
}

TEST(LifecycleTest, RunsSeveralCampaignsOldestFirst) {
  World world;
  const std::string first = world.Submit(), second = world.Submit();
  ScriptedWorker one(world, "a"), other(world, "b");
  const v1::LeaseTrialResponse a = one.MustLease(), b = other.MustLease();
  EXPECT_EQ(a.trial().name(), first + "/trials/1");
  EXPECT_EQ(b.trial().name(), second + "/trials/1");
  EXPECT_FALSE(one.Lease()->has_trial()) << "one iteration at a time";
  EXPECT_TRUE(one.Complete(a).ok());
  EXPECT_TRUE(other.Complete(b).ok());
  EXPECT_EQ(one.RunAll(), 8);
  EXPECT_EQ(world.Get(first).state(), v1::FINISHED);
  EXPECT_EQ(world.Get(second).state(), v1::FINISHED);
}

TEST(LifecycleTest, LeasesNothingWhilePausedButCountsWhatWasLeased) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  ASSERT_TRUE(Pause(world, campaign).ok());
  EXPECT_EQ(world.Get(campaign).message(), "lunch");
  EXPECT_EQ(Pause(world, campaign)->state(), v1::PAUSED) << "pausing a paused one changes nothing";
  EXPECT_EQ(world.Events(campaign, v1::Event::kPaused).size(), 1u);
  EXPECT_FALSE(worker.Renew(leased.lease())->stop());
  EXPECT_TRUE(worker.Complete(leased).ok());
  EXPECT_EQ(static_cast<int>(world.Iterations(campaign).size()), 1);
  EXPECT_FALSE(worker.Lease()->has_trial());
  world.Restart();
  EXPECT_FALSE(worker.Lease()->has_trial());
  ASSERT_TRUE(Resume(world, campaign).ok());
  EXPECT_EQ(worker.RunAll(), 4);
}

TEST(LifecycleTest, RefusesWhatTheTableOfStatesDoesNotHave) {
  struct Case {
    v1::CampaignState state;
    std::function<std::string(World&, ScriptedWorker&)> make;
  };
  const std::vector<Case> cases = {
      {v1::WAITING, [](World& world, ScriptedWorker&) { return world.Submit(); }},
      {v1::RUNNING,
       [](World& world, ScriptedWorker& worker) {
         const std::string name = world.Submit();
         worker.MustLease();
         return name;
       }},
      {v1::PAUSED,
       [](World& world, ScriptedWorker&) {
         const std::string name = world.Submit();
         EXPECT_TRUE(Pause(world, name).ok());
         return name;
       }},
      {v1::FINISHED,
       [](World& world, ScriptedWorker& worker) {
         const std::string name = world.Submit();
         worker.RunAll();
         return name;
       }},
      {v1::FAILED,
       [](World& world, ScriptedWorker& worker) {
         const std::string name = world.Submit();
         worker.RunAll([](const v1::Trial&) { return FailedCheck(v1::CHECK_COMPILE, "no"); });
         return name;
       }},
      {v1::CANCELLED,
       [](World& world, ScriptedWorker&) {
         const std::string name = world.Submit();
         EXPECT_TRUE(Cancel(world, name).ok());
         return name;
       }},
  };
  using Ask = absl::StatusOr<v1::Campaign> (*)(World&, const std::string&);
  const std::pair<CampaignAction, Ask> actions[] = {
      {CampaignAction::kPause, Pause}, {CampaignAction::kResume, Resume}, {CampaignAction::kCancel, Cancel}};
  for (const Case& each : cases) {
    for (const auto& [action, ask] : actions) {
      World world;
      ScriptedWorker worker(world, "a");
      const std::string name = each.make(world, worker);
      ASSERT_EQ(world.Get(name).state(), each.state);
      const size_t before = world.Events(name).size();
      const absl::StatusOr<v1::Campaign> answer = ask(world, name);
      const v1::CampaignState after = After(each.state, action, each.state == v1::RUNNING);
      // The two that may be asked for twice.
      const bool again = (each.state == v1::PAUSED && action == CampaignAction::kPause) ||
                         (each.state == v1::CANCELLED && action == CampaignAction::kCancel);
      if (after == v1::CAMPAIGN_STATE_UNSPECIFIED && !again) {
        ExpectError(answer.status(), absl::StatusCode::kFailedPrecondition, name);
      } else {
        ASSERT_TRUE(answer.ok()) << answer.status();
        EXPECT_EQ(answer->state(), again ? each.state : after);
      }
      EXPECT_EQ(world.Get(name).state(), answer.ok() ? answer->state() : each.state);
      if (!answer.ok() || again) {
        EXPECT_EQ(world.Events(name).size(), before);
      }
    }
  }
}

TEST(LifecycleTest, TellsRenewalsToStopAfterACancel) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  EXPECT_FALSE(worker.Renew(leased.lease())->stop());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_BUSY);
  EXPECT_EQ(worker.Shown().trials(0), leased.trial().name());
  ASSERT_TRUE(Cancel(world, campaign).ok());
  EXPECT_TRUE(worker.Renew(leased.lease())->stop());
  EXPECT_EQ(worker.Shown().state(), v1::WORKER_STATE_IDLE);
  EXPECT_EQ(world->leases_out(), 0);
  ExpectError(worker.Complete(leased).status(), absl::StatusCode::kFailedPrecondition, "was cancelled");
  EXPECT_TRUE(world.Iterations(campaign).empty());
  EXPECT_EQ(world.Get(campaign).message(), "it was the wrong kernel");
}

TEST(LifecycleTest, VerifiesAnIterationOfACampaignThatHasEnded) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  const v1::Campaign before = world.Get(campaign);
  const absl::StatusOr<v1::VerifyIterationResponse> planned = Verify(world, campaign + "/iterations/0");
  ASSERT_TRUE(planned.ok()) << planned.status();
  EXPECT_EQ(planned->after_sequence(), before.last_sequence());
  EXPECT_TRUE(world.Get(campaign).verifying());
  ExpectError(Verify(world, campaign + "/iterations/1").status(), absl::StatusCode::kFailedPrecondition,
              "being verified already");
  const v1::LeaseTrialResponse leased = worker.MustLease();
  EXPECT_EQ(leased.trial().name(), planned->trial());
  EXPECT_EQ(leased.trial().purpose(), v1::TRIAL_PURPOSE_VERIFY);
  EXPECT_EQ(leased.trial().iteration(), campaign + "/iterations/0");
  ASSERT_TRUE(worker.Complete(leased).ok());
  const v1::Event event = world.Events(campaign).back();
  EXPECT_TRUE(event.finished().verification().agrees());
  v1::Campaign after = world.Get(campaign);
  EXPECT_EQ(after.last_sequence(), before.last_sequence() + 3);
  after.set_last_sequence(before.last_sequence());
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString()) << "it changes nothing in the campaign";
  EXPECT_EQ(world.Iterations(campaign).size(), 5u);
  ExpectError(worker.Complete(leased).status(), absl::StatusCode::kAlreadyExists, "has its result");
  EXPECT_TRUE(Verify(world, campaign + "/iterations/1").ok()) << "and may be verified again";
}

TEST(LifecycleTest, SendsAHandOffToTheWorkerAndStoresWhatBecameOfIt) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  v1::VerifyIterationRequest request;
  request.set_name(campaign + "/iterations/0");
  request.add_hand_off()->set_path("check_program.sh");
  request.mutable_hand_off(0)->set_text("exit 0\n");
  ASSERT_TRUE(world->Verify(request).ok());
  ExpectError(world->Verify(request).status(), absl::StatusCode::kFailedPrecondition, "being verified already");
  world.Restart();
  const v1::LeaseTrialResponse leased = worker.MustLease();
  ASSERT_EQ(leased.trial().hand_off_size(), 1);
  EXPECT_EQ(leased.trial().hand_off(0).text(), "exit 0\n");
  const auto measure = [](const v1::Trial& trial) {
    v1::TrialResult result = NothingHelps(trial);
    v1::HandOffCheck& passed = *result.add_hand_off();
    passed.set_form("program");
    passed.set_passed(true);
    v1::HandOffCheck& failed = *result.add_hand_off();
    failed.set_form("extension");
    failed.set_text(std::string(100'000, 'x'));
    return result;
  };
  ASSERT_TRUE(worker.Complete(leased, measure).ok());
  const v1::Verification verification = world.Events(campaign).back().finished().verification();
  ASSERT_EQ(verification.hand_off_size(), 2);
  EXPECT_TRUE(verification.hand_off(0).passed());
  EXPECT_FALSE(verification.hand_off(1).passed());
  EXPECT_LT(verification.hand_off(1).text().size(), 2100u) << "what is stored is bounded";
}

TEST(LifecycleTest, RefusesAHandOffThatIsTooLargeOrLeavesItsFolder) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  v1::VerifyIterationRequest request;
  request.set_name(campaign + "/iterations/0");
  v1::SourceFile& file = *request.add_hand_off();
  for (const char* path : {"", "/etc/passwd", "a/../../b"}) {
    file.set_path(path);
    ExpectError(world->Verify(request).status(), absl::StatusCode::kInvalidArgument, "paths below one folder");
  }
  file.set_path("large.bin");
  file.set_binary(std::string(size_t{4} << 20, 'x'));
  ExpectError(world->Verify(request).status(), absl::StatusCode::kInvalidArgument, "expected at most");
  EXPECT_FALSE(world.Get(campaign).verifying());
}

TEST(LifecycleTest, GoesOnWithAVerificationAfterARestart) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  ASSERT_TRUE(Verify(world, campaign + "/iterations/0").ok());
  world.Restart();
  EXPECT_TRUE(world.Get(campaign).verifying());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  world.Restart();
  EXPECT_EQ(world->leases_out(), 1) << "its lease is adopted";
  EXPECT_FALSE(worker.Renew(leased.lease())->stop());
  const absl::Status completed = worker.Complete(leased).status();
  ASSERT_TRUE(completed.ok()) << completed;
  EXPECT_TRUE(world.Events(campaign).back().finished().has_verification());
  EXPECT_FALSE(world.Get(campaign).verifying());
  world.Restart();
  EXPECT_FALSE(worker.Lease()->has_trial());
}

TEST(LifecycleTest, LosesNoVerificationToACancel) {
  World world;
  v1::CampaignSpec spec;
  spec.mutable_budget()->set_iterations(2);  // no third is planned while one of them is open
  const std::string campaign = world.Submit(spec);
  ScriptedWorker worker(world, "a"), other(world, "b");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const v1::LeaseTrialResponse iteration = other.MustLease();
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok()) << "another change";
  ASSERT_TRUE(Verify(world, campaign + "/iterations/0").ok());
  const v1::LeaseTrialResponse verification = worker.MustLease();
  ASSERT_EQ(verification.trial().purpose(), v1::TRIAL_PURPOSE_VERIFY);
  ASSERT_TRUE(Cancel(world, campaign).ok());
  EXPECT_EQ(world->leases_out(), 1);
  EXPECT_TRUE(other.Renew(iteration.lease())->stop());
  EXPECT_FALSE(worker.Renew(verification.lease())->stop());
  world.Pass(absl::Seconds(16));  // its worker is lost
  const v1::LeaseTrialResponse again = other.MustLease();
  EXPECT_EQ(again.trial().name(), verification.trial().name());
  EXPECT_TRUE(other.Complete(again).ok());
  EXPECT_FALSE(world.Get(campaign).verifying());
}

TEST(LifecycleTest, GivesUpAVerificationThatNoMachineCanRun) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  ASSERT_TRUE(Verify(world, campaign + "/iterations/0").ok());
  for (int i = 0; i < 3; ++i) {
    const v1::LeaseTrialResponse leased = worker.MustLease();
    ASSERT_TRUE(worker.HostFault(leased.lease(), "no NVRTC").ok());
  }
  EXPECT_FALSE(worker.Lease()->has_trial());
  const v1::Verification verification = world.Events(campaign).back().finished().verification();
  EXPECT_FALSE(verification.agrees());
  EXPECT_THAT(verification.text(), HasSubstr("no NVRTC"));
}

TEST(LifecycleTest, VerifiesNothingOfAPausedCampaign) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  ASSERT_TRUE(Pause(world, campaign).ok());
  ExpectError(Verify(world, campaign + "/iterations/0").status(), absl::StatusCode::kFailedPrecondition,
              campaign + " is paused");
  EXPECT_FALSE(world.Get(campaign).verifying());
  ASSERT_TRUE(Resume(world, campaign).ok());
  ASSERT_TRUE(Verify(world, campaign + "/iterations/0").ok());
  ASSERT_TRUE(Pause(world, campaign).ok());
  world.Pass(absl::Seconds(1));
  EXPECT_FALSE(world.Get(campaign).verifying()) << "nobody waits a minute for what no worker may take";
  EXPECT_THAT(world.Events(campaign).back().finished().verification().text(), HasSubstr("the campaign was paused"));
}

TEST(LifecycleTest, GivesTheSameTrialForTheSameVerification) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll();
  const absl::StatusOr<v1::VerifyIterationResponse> first = Verify(world, campaign + "/iterations/0");
  const absl::StatusOr<v1::VerifyIterationResponse> again = Verify(world, campaign + "/iterations/0");
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(first->trial(), again->trial());
  EXPECT_EQ(worker.RunAll(), 1);
}

TEST(LifecycleTest, GivesUpAVerificationThatNobodyTakes) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a"), other(world, "b");
  worker.RunAll();
  ASSERT_TRUE(Verify(world, campaign + "/iterations/0").ok());
  world.Pass(absl::Seconds(59));
  EXPECT_TRUE(world.Get(campaign).verifying());
  const v1::LeaseTrialResponse leased = worker.MustLease();
  for (int i = 0; i < 10; ++i) {
    world.Pass(absl::Seconds(10));
    ASSERT_TRUE(worker.Renew(leased.lease()).ok()) << "it may take longer than that";
  }
  world.Pass(absl::Seconds(16));
  ASSERT_TRUE(other.Register().ok());
  const v1::LeaseTrialResponse again = other.MustLease();
  EXPECT_EQ(again.trial().name(), leased.trial().name()) << "what its worker lost is leased again";
  ASSERT_TRUE(other.GiveBack(again.lease()).ok());
  world.Pass(absl::Seconds(61));
  EXPECT_FALSE(world.Get(campaign).verifying());
  EXPECT_EQ(world.Events(campaign).back().finished().verification().text(), "abandoned: no worker leased the trial");
  EXPECT_FALSE(worker.Lease()->has_trial());
}

TEST(LifecycleTest, RefusesToVerifyWhatWasNeverMeasured) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  worker.RunAll([](const v1::Trial& trial) {
    return trial.has_parent() ? FailedCheck(v1::CHECK_TOLERANCE, "wrong") : MeasuredStart(100);
  });
  ExpectError(Verify(world, campaign + "/iterations/1").status(), absl::StatusCode::kFailedPrecondition,
              "never measured");
  ExpectError(Verify(world, campaign + "/iterations/99").status(), absl::StatusCode::kNotFound, "iterations/99");
  ExpectError(Verify(world, "campaigns/9/iterations/0").status(), absl::StatusCode::kNotFound, "campaigns/9");
  ExpectError(Verify(world, campaign).status(), absl::StatusCode::kInvalidArgument, "name");
}

TEST(LifecycleTest, TriesAProposalNextAndNamesItsAuthor) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ExpectError(Propose(world, campaign, "SPLIT", 4).status(), absl::StatusCode::kFailedPrecondition, "no kept variant");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  EXPECT_EQ(Propose(world, campaign, "SPLIT", 4, "an agent")->waiting(), 0);
  EXPECT_EQ(Propose(world, campaign, "TILE", 16)->waiting(), 1);
  ExpectError(Propose(world, campaign, "SPLIT", 4).status(), absl::StatusCode::kAlreadyExists, "proposed before");
  world.Restart();
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());  // what was planned before
  const v1::LeaseTrialResponse proposed = worker.MustLease();
  EXPECT_EQ(VariantText(proposed.trial().variant()), "SPLIT=4 TILE=32");
  ASSERT_TRUE(worker.Complete(proposed).ok());
  EXPECT_EQ(world.Iterations(campaign)[2].author(), "an agent");
  ExpectError(Propose(world, campaign, "SPLIT", 4).status(), absl::StatusCode::kAlreadyExists, "tried before");
  worker.RunAll();
  EXPECT_EQ(world.Iterations(campaign).size(), 5u);
  ExpectError(Propose(world, campaign, "SPLIT", 2).status(), absl::StatusCode::kFailedPrecondition, "has ended");
}

TEST(LifecycleTest, RefusesProposalsThatAreNone) {
  World world;
  const std::string campaign = world.Submit();
  ScriptedWorker worker(world, "a");
  ASSERT_TRUE(worker.Complete(worker.MustLease()).ok());
  const auto bad = absl::StatusCode::kInvalidArgument;
  ExpectError(Propose(world, campaign, "WARPS", 4).status(), bad, "no variable \"WARPS\"");
  ExpectError(Propose(world, campaign, "SPLIT", 3).status(), bad, "its values are 1, 2, 4");
  ExpectError(Propose(world, campaign, "SPLIT", 1).status(), bad, "already");
  ExpectError(Propose(world, campaign, "SPLIT", 2, "").status(), bad, "author");
  ExpectError(Propose(world, "campaigns/8", "SPLIT", 2).status(), absl::StatusCode::kNotFound, "campaigns/8");
  const absl::Status malformed = Propose(world, "8", "SPLIT", 2).status();
  ExpectError(malformed, bad, "campaigns/7");
  EXPECT_EQ(DetailOf(malformed).field(), "campaign");
  v1::ProposeChangeRequest edit;
  edit.set_campaign(campaign);
  edit.set_author("ann");
  edit.mutable_change()->mutable_source()->set_name("unroll");
  ExpectError(world->Propose(edit).status(), bad, "change");
}

TEST(LifecycleTest, KnowsNoOtherCampaigns) {
  World world;
  v1::GetCampaignRequest request;
  for (const char* name : {"", "7", "campaigns/", "campaigns/-1", "campaigns/07", "campaigns/99999999999999999999",
                           "campaigns/7/iterations/1"}) {
    request.set_name(name);
    ExpectError(world->Get(request).status(), absl::StatusCode::kInvalidArgument, "campaigns/7");
  }
  for (const char* name : {"campaigns/0", "campaigns/7", "campaigns/9223372036854775807"}) {
    request.set_name(name);
    ExpectError(world->Get(request).status(), absl::StatusCode::kNotFound, name);
    ExpectError(Pause(world, name).status(), absl::StatusCode::kNotFound, name);
    ExpectError(Resume(world, name).status(), absl::StatusCode::kNotFound, name);
    ExpectError(Cancel(world, name).status(), absl::StatusCode::kNotFound, name);
  }
}

}  // namespace
}  // namespace pawl
