#include "orchestrator/engine/verdict/seat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "orchestrator/engine/verdict/verdict.h"
#include "profiles/gpus.h"
#include "profiles/seat_rule.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/profiles/recorded_series.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kAnchorUs = 10;

// One process: what it adds to the logarithm of the parent's and of the candidate's time, and what a witness takes.
struct Added {
  double parent = 0, candidate = 0;
  double witness_us = 0;                    // 0: there is none
  std::optional<int> calls = std::nullopt;  // of a graph, where that differs
  // Of a goal over two sizes: what the lighter one adds to the parent's time beside that, and how many calls it has in
  // a graph, where that differs.
  double parent_at_small = 0;
  std::optional<int> calls_at_small = std::nullopt;
  bool skips_small = false;
};

constexpr double kSmallWeight = 0.4;

v1::Goal GoalOfOneSize() {
  v1::Goal goal;
  goal.set_size("main");
  return goal;
}

v1::Goal GoalOfTwoSizes() {
  v1::Goal goal = GoalOfOneSize();
  (*goal.mutable_sizes())["small"] = kSmallWeight;
  (*goal.mutable_sizes())["main"] = 1 - kSmallWeight;
  return goal;
}

// A campaign on an H200 whose trials are measured with an anchor.
class SeatCampaign {
 public:
  explicit SeatCampaign(const v1::Goal& goal = GoalOfOneSize()) : state_("campaigns/7", Bundle()) {
    v1::Event submitted;
    *submitted.mutable_submitted()->mutable_spec()->mutable_goal() = goal;
    state_.Apply(submitted);
    Try(std::nullopt, 100, 100, {Added()});
  }

  // Measures one more iteration: the times of parent and candidate in us, and what each process adds to them.
  v1::TrialFinished Try(std::optional<int> parent, double parent_us, double us, const std::vector<Added>& processes,
                        bool anchored = true, const v1::SeatTime& alone = {}) {
    v1::Event planned;
    v1::TrialPlanned& plan = *planned.mutable_planned();
    plan.set_trial(state_.next_trial());
    plan.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
    plan.set_iteration(state_.next_iteration());
    if (parent) {
      plan.set_parent(*parent);
      *plan.mutable_noise() = state_.NoiseFor(*parent);
    }
    state_.Apply(planned);
    v1::Event finished;
    v1::TrialFinished& f = *finished.mutable_finished();
    f.set_trial(plan.trial());
    v1::TrialResult& result = *f.mutable_result();
    result = MeasuredStart(us);
    result.mutable_gpu()->set_name("NVIDIA H200");
    result.mutable_gpu()->set_uuid(gpu_uuid);
    result.set_checked_to_keep(true);
    for (size_t process = 0; process < processes.size(); ++process) {
      auto* pairs = process == 0 ? result.mutable_pairs() : result.mutable_confirming_pairs();
      const Added& added = processes[process];
      for (const SizeWeight& size : state_.goal_sizes()) {
        const bool small = size.size == "small";
        if (small && added.skips_small) continue;
        const int first = pairs->size();
        AddPairs(pairs, parent_us * std::exp(added.parent + (small ? added.parent_at_small : 0)),
                 us * std::exp(added.candidate), pairs_each, static_cast<int>(process));
        for (int i = first; i < pairs->size(); ++i) {
          if (anchored) pairs->at(i).set_anchor_us(kAnchorUs);
          pairs->at(i).set_protocol(protocol);
          pairs->at(i).set_data(data);
          pairs->at(i).set_single(single);
          pairs->at(i).set_calls(added.calls.value_or(calls));
          if (small && added.calls_at_small) pairs->at(i).set_calls(*added.calls_at_small);
          pairs->at(i).set_witness_us(added.witness_us);
          if (state_.goal_sizes().size() > 1) pairs->at(i).set_size(size.size);
        }
      }
    }
    if (alone.processes() > 0) *result.mutable_parent_alone() = alone;
    if (again.processes() > 0) *result.mutable_parent_again() = again;
    if (!failure.message().empty()) *result.mutable_failure() = failure;
    if (alone_beside_anchor.processes() > 0) *result.mutable_parent_alone_beside_anchor() = alone_beside_anchor;
    *f.mutable_iteration() = Judge(state_, plan, result);
    for (v1::RevisedIteration& revised : RevisedBySeat(state_, f.iteration(), plan.noise(), Gates::Default())) {
      *f.add_revised() = std::move(revised);
    }
    state_.Apply(finished);
    return f;
  }

  // What the trial of a child of `parent` is given.
  v1::Trial TrialOf(int parent, v1::TrialPurpose purpose = v1::TRIAL_PURPOSE_ITERATION, bool expedition = false) const {
    v1::TrialPlanned planned;
    planned.set_purpose(purpose);
    planned.set_parent(parent);
    planned.set_expedition(expedition);
    v1::Trial trial;
    AddWitness(state_, planned, &trial);
    return trial;
  }

  std::string gpu_uuid = "GPU-1";  // that measures what comes next
  int pairs_each = 12;             // of a process, at each size
  bool single = false;             // calls are timed one by one
  int calls = 0;                   // of a graph
  int protocol = 0;
  uint32_t data = 0;  // of problem.py
  v1::SeatTime alone_beside_anchor, again;
  v1::Failure failure;  // of what comes next

  const CampaignState& state() const { return state_; }
  v1::Verdict VerdictOf(int iteration) const { return state_.Find(iteration)->verdict(); }

 private:
  static const v1::Bundle& Bundle() {
    static const auto& bundle = *new v1::Bundle(TinyBundle());
    return bundle;
  }
  CampaignState state_;
};

// By `slower` in the parent's seat, beside this candidate.
std::vector<Added> Slower(double slower, int processes = 1) {
  return std::vector<Added>(static_cast<size_t>(processes), {std::log1p(slower), 0});
}

TEST(Seat, IsTimedRelativeToTheAnchorInEveryProcess) {
  SeatCampaign campaign;
  const v1::Iteration kept = campaign.Try(0, 100, 80, {{0.001, 0.002}, {0.003, 0.004}}).iteration();
  EXPECT_EQ(kept.verdict(), v1::KEPT) << kept.reason();
  EXPECT_NEAR(kept.as_candidate().log_time(), std::log(8) + 0.003, 1e-9);
  EXPECT_EQ(kept.as_candidate().processes(), 2);
  EXPECT_NEAR(kept.as_parent().log_time(), std::log(10) + 0.002, 1e-4);
  EXPECT_EQ(kept.as_parent().processes(), 2);
  EXPECT_EQ(campaign.state().Find(0)->as_candidate().processes(), 1) << "its time alone counts";
  EXPECT_FALSE(campaign.state().Find(0)->has_as_parent());
}

TEST(Seat, RejectsAVariantThatIsSlowerAsAParentWithWhatWasBuiltOnIt) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  const v1::Iteration first = campaign.Try(1, 80, 70, Slower(0.06, 2)).iteration();
  EXPECT_EQ(first.verdict(), v1::REJECTED) << "it may be the candidate that slows its parent";
  EXPECT_EQ(first.failure().check(), v1::CHECK_SEAT);
  EXPECT_THAT(first.reason(), HasSubstr("the parent took 6.0 % longer beside this candidate than before"));
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
  EXPECT_EQ(campaign.Try(1, 80, 90, Slower(0)).revised_size(), 0);
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT) << "beside one candidate only";
  campaign.Try(1, 80, 60, Slower(0.01, 2));
  ASSERT_EQ(campaign.VerdictOf(4), v1::KEPT);
  campaign.Try(4, 60, 50, Slower(0, 2));
  ASSERT_EQ(campaign.VerdictOf(5), v1::KEPT);
  EXPECT_EQ(campaign.state().summary().best(), 5);
  v1::TrialFinished finished;
  for (int i = 0; i < 8 && finished.revised().empty(); ++i) finished = campaign.Try(1, 80, 70, Slower(0.06, 2));
  ASSERT_EQ(finished.revised_size(), 3);
  EXPECT_EQ(finished.iteration().verdict(), v1::REJECTED) << "not kept on a parent that is rejected";
  EXPECT_THAT(finished.iteration().reason(), HasSubstr("its parent is rejected: as a parent it takes"));
  for (const int number : {1, 4, 5}) {
    EXPECT_EQ(campaign.VerdictOf(number), v1::REJECTED) << number;
    EXPECT_EQ(campaign.state().Find(number)->failure().check(), v1::CHECK_SEAT);
    EXPECT_EQ(campaign.state().Find(number)->failed_gates().rbegin()->gate(), "seat");
  }
  EXPECT_THAT(campaign.state().Find(1)->reason(), HasSubstr("longer than as a candidate, relative to the anchor"));
  EXPECT_THAT(campaign.state().Find(5)->reason(), HasSubstr("it was built on iteration 1, which was rejected"));
  EXPECT_EQ(campaign.state().summary().best(), 0);
  EXPECT_EQ(campaign.state().summary().counts().kept(), 0);
}

TEST(Seat, KeepsNothingOfAParentThatWasRejectedMeanwhile) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  while (campaign.VerdictOf(1) == v1::KEPT) campaign.Try(1, 80, 100, Slower(0.06));
  const v1::Iteration late = campaign.Try(1, 80, 60, Slower(0, 2)).iteration();
  EXPECT_EQ(late.verdict(), v1::REVERTED);
  EXPECT_THAT(late.reason(), HasSubstr("its parent, iteration 1, was taken back"));
}

TEST(Seat, DoesNotBlameAVariantForOneCandidateThatSlowsIt) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  campaign.Try(1, 80, 90, Slower(0));
  EXPECT_EQ(campaign.Try(1, 80, 60, Slower(0.5, 2)).iteration().failure().check(), v1::CHECK_SEAT);
  for (int i = 0; i < 5; ++i) campaign.Try(1, 80, 90, Slower(0));
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
}

TEST(Seat, NeverRejectsTheStart) {
  SeatCampaign campaign;
  for (int i = 0; i < 20; ++i) campaign.Try(0, 100, 120, Slower(0.1));
  EXPECT_EQ(campaign.VerdictOf(0), v1::KEPT);
}

TEST(Seat, ExemptsIterationsWithoutAnAnchor) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2), /*anchored=*/false);
  EXPECT_FALSE(campaign.state().Find(1)->has_as_candidate());
  for (int i = 0; i < 5; ++i) campaign.Try(1, 80, 90, Slower(0.1));
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
  EXPECT_EQ(campaign.Try(1, 80, 70, Slower(0.1, 2), /*anchored=*/false).iteration().verdict(), v1::KEPT);
}

// The parent slower by `slower`; the second process has a witness.
std::vector<Added> Witnessed(double slower, double witness_us) {
  return {{std::log1p(slower), 0}, {std::log1p(slower), 0, witness_us}};
}

TEST(Witness, TellsHowTheStartWasTimed) {
  SeatCampaign campaign;
  EXPECT_EQ(campaign.TrialOf(0).parent_as_candidate().calls(), 0) << "it does not say";
  campaign.calls = 8;
  campaign.Try(std::nullopt, 100, 100, {Added()});
  EXPECT_EQ(campaign.TrialOf(1).parent_as_candidate().calls(), 8);
  EXPECT_EQ(campaign.TrialOf(1).parent_as_candidate().processes(), 0) << "there is no witness";
}

TEST(Witness, IsTheStartForItsChildrenAndStaysAsLongAsItIsNear) {
  SeatCampaign campaign;
  EXPECT_FALSE(campaign.TrialOf(0).has_witness()) << "the start never was a candidate";
  const v1::Iteration first = campaign.Try(0, 100, 90, {Added(), Added()}).iteration();
  ASSERT_EQ(first.verdict(), v1::KEPT) << first.reason();
  EXPECT_EQ(first.candidate_beside_witness().witness(), 0);
  EXPECT_EQ(first.candidate_beside_witness().processes(), 2);
  EXPECT_NEAR(first.candidate_beside_witness().log_time(), std::log(0.9), 1e-3);
  EXPECT_FALSE(first.has_parent_beside_witness());
  const v1::Trial trial = campaign.TrialOf(1);
  EXPECT_TRUE(trial.has_witness());
  EXPECT_NEAR(trial.parent_as_candidate().log_time(), std::log(0.9), 1e-3);
  EXPECT_TRUE(campaign.TrialOf(1, v1::TRIAL_PURPOSE_END, true).has_witness()) << "it may be kept by this trial";
  EXPECT_FALSE(campaign.TrialOf(1, v1::TRIAL_PURPOSE_ITERATION, true).has_witness()) << "a step is not";

  const v1::Iteration second = campaign.Try(1, 90, 85, Witnessed(0, 100)).iteration();
  ASSERT_EQ(second.verdict(), v1::KEPT) << second.reason();
  EXPECT_EQ(second.parent_beside_witness().processes(), 1) << "where there was a witness";
  EXPECT_NEAR(second.parent_beside_witness().log_time(), std::log(0.9), 1e-3);
  EXPECT_EQ(second.candidate_beside_witness().witness(), 0);
  EXPECT_NEAR(second.candidate_beside_witness().log_time(), std::log(0.85), 1e-3);

  const v1::Iteration third = campaign.Try(2, 85, 60, Witnessed(0, 100)).iteration();
  ASSERT_EQ(third.verdict(), v1::KEPT) << third.reason();
  EXPECT_EQ(third.candidate_beside_witness().witness(), 2) << "the start takes 1.7 times as long";
  EXPECT_NEAR(third.candidate_beside_witness().log_time(), std::log(60.0 / 85), 1e-3);
}

TEST(Witness, RejectsACandidateBesideWhichItsParentIsTwoPercentSlower) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  const v1::Iteration child = campaign.Try(1, 90, 86, Witnessed(0.02, 100)).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED);
  EXPECT_EQ(child.failure().check(), v1::CHECK_SEAT);
  EXPECT_THAT(child.reason(), HasSubstr("beside this candidate the parent took 2.0 % longer than as a candidate, "
                                        "relative to iteration 0 in the same processes"));
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT) << "it may have been the candidate's doing";
}

TEST(Witness, RejectsAParentThatTwoTrialsCouldNotTimeWithoutTheirCandidates) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  campaign.failure.set_stage(v1::STAGE_MEASURE);
  campaign.failure.set_check(v1::CHECK_SEAT);
  campaign.failure.set_message(
      absl::StrCat(kParentNotTimed, " (its outputs are off): the comparison can't be believed"));
  EXPECT_EQ(campaign.Try(1, 90, 80, Witnessed(0, 100)).iteration().verdict(), v1::REJECTED);
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT) << "it may have been the candidate's doing";
  EXPECT_EQ(campaign.Try(1, 90, 81, Witnessed(0, 100)).iteration().verdict(), v1::REJECTED);
  EXPECT_EQ(campaign.VerdictOf(1), v1::REJECTED);
  EXPECT_THAT(campaign.state().Find(1)->reason(), HasSubstr("it could not be timed without its candidates"));
}

TEST(Witness, DoesNotCountWhatTheParentWasSlowedDownByAsAGain) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  // 1 % is below the limit of the test; of a gain of 1.9 % it leaves 0.9 %.
  const v1::Iteration child = campaign.Try(1, 90, 89.2, Witnessed(0.01, 100)).iteration();
  EXPECT_EQ(child.comparison(), v1::FASTER) << child.reason();
  EXPECT_EQ(child.verdict(), v1::REVERTED) << child.reason();
  EXPECT_THAT(child.reason(), HasSubstr("beside it the parent took 1.0 % longer than before"));
  EXPECT_TRUE(child.parent_slowed());
  EXPECT_THAT(child.reason(), HasSubstr("without that the gain would be +0.9 % (it must exceed 1 %)"));
  EXPECT_EQ(campaign.Try(1, 90, 86, Witnessed(0.01, 100)).iteration().verdict(), v1::KEPT) << "4.6 % are left";
}

TEST(Witness, KnowsTheParentsTimeCallByCallFromProcessesWithoutTheCandidate) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  campaign.single = true;
  v1::SeatTime alone;  // a call takes longer by itself
  alone.set_log_time(std::log(0.92));
  alone.set_processes(2);
  alone.set_single(true);
  const v1::Iteration honest = campaign.Try(1, 92, 86, Witnessed(0, 100), true, alone).iteration();
  EXPECT_EQ(honest.verdict(), v1::KEPT) << honest.reason();
  const v1::Iteration child = campaign.Try(1, 92, 88, Witnessed(0.04, 100), true, alone).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << child.reason();
  EXPECT_EQ(child.failure().check(), v1::CHECK_SEAT);
}

// On an H200 a parent was 3.6 % and 6.2 % slower beside candidates for which a graph had 3 and 4 calls, not 2.
TEST(Witness, ComparesTimesOfGraphsWithAsManyCallsOnly) {
  SeatCampaign campaign;
  campaign.calls = 2;
  campaign.Try(0, 100, 90, {Added(), Added()});
  campaign.calls = 4;
  const v1::Iteration unknown = campaign.Try(1, 90, 60, Witnessed(0.062, 100)).iteration();
  EXPECT_EQ(unknown.verdict(), v1::KEPT) << unknown.reason();
  v1::SeatTime alone;
  alone.set_log_time(std::log(0.9 * 1.062));
  alone.set_processes(2);
  alone.set_calls(4);
  const v1::Iteration known = campaign.Try(1, 90, 60, Witnessed(0.062, 100), true, alone).iteration();
  EXPECT_NE(known.verdict(), v1::REJECTED) << known.reason();
  const v1::Iteration slowed = campaign.Try(1, 90, 58, Witnessed(0.11, 100), true, alone).iteration();
  EXPECT_EQ(slowed.verdict(), v1::REJECTED) << slowed.reason();
}

// A campaign that goes on after an upgrade of its worker has times of two protocols.
TEST(Witness, ComparesTimesOfOneProtocolOnly) {
  const auto after_upgrade = [](double slower, const v1::SeatTime& alone) {
    SeatCampaign campaign;
    campaign.Try(0, 100, 90, {Added(), Added()});
    campaign.protocol = 1;
    return campaign.Try(1, 90, 80, Witnessed(slower, 100), true, alone).iteration().verdict();
  };
  EXPECT_EQ(after_upgrade(0.062, {}), v1::KEPT);
  v1::SeatTime alone;
  alone.set_log_time(std::log(0.9 * 1.062));
  alone.set_processes(2);
  EXPECT_EQ(after_upgrade(0.11, alone), v1::KEPT) << "it was timed alone by the old protocol, which says nothing";
  alone.set_protocol(1);
  EXPECT_EQ(after_upgrade(0.062, alone), v1::KEPT);
  EXPECT_EQ(after_upgrade(0.11, alone), v1::REJECTED);
}

TEST(Seat, DoesNotTakeAnotherProtocolForNoise) {
  const auto variance = [](double longer) {
    SeatCampaign campaign;
    campaign.Try(0, 100, 90, {Added(), Added()});
    for (int i = 0; i < 10; ++i) campaign.Try(1, 90, 95, {Added()});
    campaign.protocol = 1;
    for (int i = 0; i < 10; ++i) campaign.Try(1, 90 * longer, 95 * longer, {Added()});
    return campaign.state().NoiseFor(0).anchor_variance();
  };
  EXPECT_NEAR(variance(1.05), variance(1), 1e-12);
}

// A sparse product takes as long as its longest row, and every trial may have other matrices.
TEST(Seat, ComparesTimesWithTheSameInputsOnly) {
  const auto verdict = [](double slower, uint32_t data, const v1::SeatTime& alone) {
    SeatCampaign campaign;
    campaign.data = 1;
    campaign.Try(0, 100, 100, {Added()});
    campaign.data = data;
    campaign.alone_beside_anchor = alone;
    return campaign.Try(0, 100 * (1 + slower), 70 * (1 + slower), {Added(), Added()}).iteration();
  };
  const v1::Iteration same = verdict(0.12, 1, {});
  EXPECT_EQ(same.verdict(), v1::REJECTED) << same.reason();
  EXPECT_EQ(same.failure().check(), v1::CHECK_SEAT);
  EXPECT_EQ(verdict(0.12, 2, {}).verdict(), v1::KEPT);

  // What it took with these inputs without the candidate.
  v1::SeatTime alone;
  alone.set_log_time(std::log(10 * 1.12));
  alone.set_processes(2);
  alone.set_data(2);
  EXPECT_EQ(verdict(0.12, 2, alone).verdict(), v1::KEPT);
  EXPECT_EQ(verdict(0.12, 1, alone).verdict(), v1::REJECTED) << "it was timed alone with other inputs";
  const v1::Iteration slowed = verdict(0.24, 2, alone);
  EXPECT_EQ(slowed.verdict(), v1::REJECTED) << slowed.reason();
  EXPECT_EQ(slowed.failure().check(), v1::CHECK_SEAT);
}

// It waits from some moment on, with its child and without it, where it had other inputs as a candidate.
TEST(Witness, FindsAParentThatBecameSlowerByTheInputsThatItHadAsACandidate) {
  const auto child = [](double slower_again) {
    SeatCampaign campaign;
    campaign.data = 1;
    campaign.Try(0, 100, 90, {Added(), Added()});
    campaign.data = 2;
    v1::SeatTime alone;
    alone.set_log_time(std::log(0.9 * 1.06));
    alone.set_processes(2);
    alone.set_data(2);
    campaign.again = alone;
    campaign.again.set_log_time(std::log(0.9 * (1 + slower_again)));
    campaign.again.set_data(1);
    return campaign.Try(1, 90, 80, Witnessed(0.06, 100), true, alone).iteration();
  };
  EXPECT_EQ(child(0).verdict(), v1::KEPT) << child(0).reason();
  EXPECT_EQ(child(0.06).verdict(), v1::REJECTED);
  EXPECT_EQ(child(0.06).failure().check(), v1::CHECK_SEAT);
}

// A candidate may see to it that its first process is timed in another way than those that confirm.
TEST(Witness, GoesByTheProcessesThatWereTimedAsTheLast) {
  SeatCampaign campaign;
  campaign.calls = 3;
  campaign.Try(0, 100, 90, {Added(), Added()});
  std::vector<Added> mixed = Witnessed(0.04, 100);
  mixed[0].calls = 2;
  const v1::Iteration child = campaign.Try(1, 90, 86, mixed).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << child.reason();
  EXPECT_EQ(child.failure().check(), v1::CHECK_SEAT);
}

TEST(Witness, DoesNotTakeTimesOfTheParentAloneThatWereTakenInAnotherWay) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  v1::SeatTime alone;
  alone.set_log_time(std::log(0.95));
  alone.set_processes(2);
  alone.set_single(true);
  const v1::Iteration child = campaign.Try(1, 90, 86, Witnessed(0.04, 100), true, alone).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << "by its time as a candidate";
}

TEST(Witness, RejectsAVariantThatTwoCandidatesShowToBeSlowerWithWhatWasBuiltOnIt) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  campaign.Try(1, 90, 84, Witnessed(0, 100));
  campaign.Try(2, 84, 80, Witnessed(0, 100));
  ASSERT_EQ(campaign.VerdictOf(3), v1::KEPT);
  EXPECT_EQ(campaign.Try(1, 90, 86, Witnessed(0.02, 100)).revised_size(), 0);
  const v1::TrialFinished finished = campaign.Try(1, 90, 85, Witnessed(0.025, 100));
  ASSERT_EQ(finished.revised_size(), 3);
  EXPECT_THAT(finished.iteration().reason(), HasSubstr("its parent is rejected: as a parent it takes 2.5 % longer"));
  for (const int number : {1, 2, 3}) EXPECT_EQ(campaign.VerdictOf(number), v1::REJECTED) << number;
  EXPECT_EQ(campaign.state().summary().best(), 0);
}

TEST(Witness, LetsFewCandidatesNotOutvoteManyThatShowNoBias) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  for (int i = 0; i < 3; ++i) campaign.Try(1, 90, 84, Witnessed(0, 100));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(campaign.Try(1, 90, 86, Witnessed(0.02, 100)).revised_size(), 0);
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
}

TEST(Witness, DecidesWhereTheAnchorAloneWouldBlameTheParent) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  // Everything but the anchor takes 5 % longer in this trial.
  const std::vector<Added> later = {{0.05, 0.05}, {0.05, 0.05, 100 * std::exp(0.05)}};
  const v1::TrialFinished child = campaign.Try(1, 90, 80, later);
  EXPECT_EQ(child.iteration().verdict(), v1::KEPT) << child.iteration().reason();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(campaign.Try(1, 90, 95, later).revised_size(), 0);
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
}

TEST(Witness, DoesNotOverruleTheAnchorWhereBothMayBeSlowed) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  const v1::Iteration child = campaign.Try(1, 90, 80, {{0.2, 0}, {0.2, 0, 100 * std::exp(0.2)}}).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << child.reason();
  EXPECT_THAT(child.reason(), HasSubstr("relative to the anchor"));
}

TEST(Seat, AllowsForTimesThatScatterFromTrialToTrial) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  for (int i = 0; i < 2; ++i) {
    for (const double drift : {0.02, -0.03, 0.01, -0.02, 0.03, -0.01, 0.02}) campaign.Try(1, 80, 90, Slower(drift));
  }
  const v1::Iteration child = campaign.Try(1, 80, 70, Slower(0.05, 2)).iteration();
  EXPECT_EQ(child.verdict(), v1::KEPT) << child.reason();
  EXPECT_EQ(campaign.Try(1, 80, 70, Slower(0.3, 2)).iteration().verdict(), v1::REJECTED);
}

TEST(Seat, IsNotTimedByComparisonsThatEndedWithFewPairs) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  const std::string noise = campaign.state().NoiseFor(1).SerializeAsString();
  campaign.pairs_each = 2;
  // One of them after another shows a parent that takes 30 % longer, or less.
  for (const double slower : {0.3, -0.2, 0.3, 0.3, 0.3, 0.3}) {
    const v1::TrialFinished few = campaign.Try(1, 80, 160, Slower(slower));
    EXPECT_EQ(few.iteration().comparison(), v1::SLOWER) << few.iteration().reason();
    EXPECT_FALSE(few.iteration().has_as_candidate());
    EXPECT_FALSE(few.iteration().has_as_parent());
    EXPECT_FALSE(few.iteration().has_candidate_beside_witness());
    EXPECT_FALSE(few.iteration().has_parent_beside_witness());
    EXPECT_EQ(few.revised_size(), 0);
  }
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
  EXPECT_EQ(campaign.state().NoiseFor(1).SerializeAsString(), noise);
  EXPECT_EQ(campaign.state().NoiseFor(0).SerializeAsString(), noise);
  campaign.pairs_each = 12;
  const v1::Iteration child = campaign.Try(1, 80, 70, Slower(0, 2)).iteration();
  EXPECT_EQ(child.verdict(), v1::KEPT) << child.reason();
}

TEST(Seat, ComparesCallsThatWereTimedOneByOneWithTheirLikeOnly) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 80, Slower(0, 2));
  campaign.single = true;
  const v1::Iteration first = campaign.Try(1, 80, 70, Slower(0.3, 2)).iteration();
  EXPECT_EQ(first.verdict(), v1::KEPT) << first.reason();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(campaign.Try(1, 80, 90, Slower(0.3)).revised_size(), 0);
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT);
  const v1::Iteration slowed = campaign.Try(1, 80, 60, Slower(0.6, 2)).iteration();
  EXPECT_EQ(slowed.verdict(), v1::REJECTED) << "against other times of the same kind";
}

TEST(Witness, DoesNotCompareTwoGpus) {
  SeatCampaign campaign;
  campaign.Try(0, 100, 90, {Added(), Added()});
  campaign.gpu_uuid = "GPU-2";
  const v1::Iteration child = campaign.Try(1, 90, 86, Witnessed(0.02, 100)).iteration();
  EXPECT_EQ(child.verdict(), v1::KEPT) << child.reason();
  EXPECT_FALSE(child.has_parent_beside_witness());
}

// The parent slower by `slower` at the lighter of two sizes only; the second process has a witness.
std::vector<Added> WitnessedAtSmall(double slower) {
  std::vector<Added> processes = Witnessed(0, 100);
  for (Added& process : processes) process.parent_at_small = std::log1p(slower);
  return processes;
}

TEST(SeatOverSizes, IsTheWeightedMeanOfTheTimesAtEverySize) {
  SeatCampaign campaign(GoalOfTwoSizes());
  const v1::Iteration first = campaign.Try(0, 100, 90, {Added(), Added()}).iteration();
  ASSERT_EQ(first.verdict(), v1::KEPT) << first.reason();
  EXPECT_NEAR(first.as_candidate().log_time(), std::log(9), 1e-9);
  EXPECT_EQ(first.as_candidate().processes(), 2);
  EXPECT_NEAR(first.candidate_beside_witness().log_time(), std::log(0.9), 1e-3);
  const v1::Iteration second = campaign.Try(1, 90, 80, WitnessedAtSmall(0.01)).iteration();
  EXPECT_EQ(second.parent_beside_witness().processes(), 1);
  EXPECT_NEAR(second.parent_beside_witness().log_time(), std::log(0.9) + kSmallWeight * std::log(1.01), 1e-6);
  EXPECT_NEAR(second.as_parent().log_time(), std::log(9) + kSmallWeight * std::log(1.01), 1e-6);
}

TEST(SeatOverSizes, RejectsACandidateBesideWhichItsParentIsSlowerAtALighterSizeOnly) {
  SeatCampaign campaign(GoalOfTwoSizes());
  campaign.Try(0, 100, 90, {Added(), Added()});
  const v1::Iteration child = campaign.Try(1, 90, 86, WitnessedAtSmall(0.06)).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << child.reason();
  EXPECT_EQ(child.failure().check(), v1::CHECK_SEAT);
  EXPECT_THAT(child.reason(), HasSubstr("the parent took 2.4 % longer than as a candidate"));
  EXPECT_EQ(campaign.VerdictOf(1), v1::KEPT) << "it may have been the candidate's doing";
  EXPECT_EQ(campaign.Try(1, 90, 85, WitnessedAtSmall(0.06)).revised_size(), 1);
  EXPECT_EQ(campaign.VerdictOf(1), v1::REJECTED);
}

TEST(SeatOverSizes, RejectsWhatTheAnchorShowsAtALighterSizeOnly) {
  SeatCampaign campaign(GoalOfTwoSizes());
  campaign.Try(0, 100, 80, {Added(), Added()});
  Added slower;
  slower.parent_at_small = 0.25;
  const v1::Iteration child = campaign.Try(1, 80, 75, {slower, slower}).iteration();
  EXPECT_EQ(child.verdict(), v1::REJECTED) << child.reason();
  EXPECT_THAT(child.reason(), HasSubstr("relative to the anchor"));
}

TEST(SeatOverSizes, DoesNotCountWhatTheParentWasSlowedDownByAtALighterSizeAsAGain) {
  SeatCampaign campaign(GoalOfTwoSizes());
  campaign.Try(0, 100, 90, {Added(), Added()});
  // 1 % in the mean, which the test allows; of a gain of 1.9 % it leaves 0.9 %.
  const v1::Iteration child = campaign.Try(1, 90, 89.2, WitnessedAtSmall(0.0252)).iteration();
  EXPECT_EQ(child.comparison(), v1::FASTER) << child.reason();
  EXPECT_EQ(child.verdict(), v1::REVERTED) << child.reason();
  EXPECT_THAT(child.reason(), HasSubstr("beside it the parent took 1.0 % longer than before"));
}

TEST(SeatOverSizes, IsComparedOnlyWhereGraphsHaveAsManyCallsAtEverySize) {
  SeatCampaign campaign(GoalOfTwoSizes());
  campaign.calls = 2;
  Added before;
  before.calls_at_small = 3;
  campaign.Try(0, 100, 90, {before, before});
  std::vector<Added> now = WitnessedAtSmall(0.12);
  for (Added& process : now) process.calls_at_small = 4;
  const v1::Iteration other = campaign.Try(1, 90, 60, now).iteration();
  EXPECT_EQ(other.verdict(), v1::KEPT) << other.reason();
  for (Added& process : now) std::tie(process.calls, process.calls_at_small) = std::pair{3, 2};
  const v1::Iteration swapped = campaign.Try(1, 90, 60, now).iteration();
  EXPECT_NE(swapped.verdict(), v1::REJECTED) << "as many in all, but other numbers at each size";
  for (Added& process : now) std::tie(process.calls, process.calls_at_small) = std::pair{2, 3};
  EXPECT_EQ(campaign.Try(1, 90, 58, now).iteration().verdict(), v1::REJECTED);
}

TEST(SeatOverSizes, LeavesOutProcessesThatDidNotTimeEverySize) {
  SeatCampaign campaign(GoalOfTwoSizes());
  Added partial;
  partial.candidate = 0.02;
  partial.skips_small = true;
  const v1::Iteration kept = campaign.Try(0, 100, 80, {Added(), partial, Added()}).iteration();
  EXPECT_EQ(kept.as_candidate().processes(), 2);
  EXPECT_NEAR(kept.as_candidate().log_time(), std::log(8), 1e-9);
  EXPECT_EQ(kept.candidate_beside_witness().processes(), 2);
  const v1::Iteration stopped = campaign.Try(0, 100, 200, {partial}).iteration();
  EXPECT_EQ(stopped.verdict(), v1::REVERTED);
  EXPECT_FALSE(stopped.has_as_candidate());
  EXPECT_FALSE(stopped.has_as_parent());
  EXPECT_FALSE(stopped.has_candidate_beside_witness());
}

// How often the test is wrong. A variant that gained 3 % gets 16 children of which none is faster.
using Effect = std::function<Added()>;

bool IsRejected(double bias, const Effect& effect) {
  SeatCampaign campaign;
  const auto processes = [&](int count, double slower) {
    std::vector<Added> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(effect());
      all.back().parent += std::log1p(slower);
    }
    return all;
  };
  campaign.Try(0, 100, 97, processes(2, 0));
  if (campaign.VerdictOf(1) != v1::KEPT) campaign.Try(0, 100, 97, Slower(0, 2));
  const int kept = campaign.state().best()->number();
  for (int i = 0; i < 16 && campaign.VerdictOf(kept) == v1::KEPT; ++i) campaign.Try(kept, 97, 104, processes(1, bias));
  return campaign.VerdictOf(kept) == v1::REJECTED;
}

class SeatRate : public testing::Test {
 protected:
  int Rejected(double bias, int campaigns, const Effect& effect) {
    int rejected = 0;
    for (int i = 0; i < campaigns; ++i) rejected += IsRejected(bias, effect);
    return rejected;
  }
  // Normal noise of a time relative to the anchor's, with this standard deviation; a part of it is each side's own.
  Effect Textbook(double sd) {
    const double side = sd / 2, both = std::sqrt(sd * sd - side * side);
    return [this, side, both] {
      const double all = both * normal_(random_);
      return Added{all + side * normal_(random_), all + side * normal_(random_)};
    };
  }
  std::mt19937_64 random_{20256};
  std::normal_distribution<double> normal_;
};

TEST_F(SeatRate, PassesHonestVariantsWithAllTheNoiseThatIsAssumed) {
  EXPECT_LE(Rejected(0, 3000, Textbook(std::sqrt(NoiseOf("h200").anchor_variance()))), 3);
}

TEST_F(SeatRate, FindsABiasOfFivePercentInNoiseOfThreePerMille) {
  EXPECT_GE(Rejected(0.05, 1000, Textbook(0.003)), 990);
}

// What the processes of a comparison that was recorded on an H200 add to the times of its two sides, relative to the
// anchor.
class RecordedSeatRate : public SeatRate {
 protected:
  void SetUp() override {
    const char* root = std::getenv("PAWL_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    const auto series = RecordedSeries::Load(std::string(root) + "/tests/profiles/series", 4);
    ASSERT_TRUE(series.ok()) << series.status();
    for (const RecordedSeries::Comparison& comparison : series->comparisons()) {
      std::vector<std::vector<double>> sides[2];
      for (const RecordedSeries::Process& process : comparison.processes) {
        for (auto* side : {&sides[0].emplace_back(), &sides[1].emplace_back()}) {
          const std::vector<double>& us = side == &sides[0].back() ? process.parent : process.candidate;
          for (size_t i = 0; i < us.size(); ++i) side->push_back(std::log(us[i] / process.anchor[i]));
        }
      }
      const std::vector<double> parent = ProcessEffects(sides[0]), candidate = ProcessEffects(sides[1]);
      std::vector<Added>& all = effects_.emplace_back();
      for (size_t i = 0; i < parent.size(); ++i) all.push_back({parent[i], candidate[i]});
    }
  }
  int RejectedOf(double bias, int campaigns) {
    int rejected = 0;
    for (int i = 0; i < campaigns; ++i) {
      const std::vector<Added>& all = effects_[random_() % effects_.size()];
      rejected += IsRejected(bias, [&] { return all[random_() % all.size()]; });
    }
    return rejected;
  }
  std::vector<std::vector<Added>> effects_;  // by comparison and process
};

TEST_F(RecordedSeatRate, PassesHonestVariants) { EXPECT_LE(RejectedOf(0, 3000), 3); }

TEST_F(RecordedSeatRate, FindsABiasOfSixPercent) { EXPECT_GE(RejectedOf(0.06, 1000), 990); }

}  // namespace
}  // namespace pawl
