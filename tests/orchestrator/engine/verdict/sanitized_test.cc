#include "orchestrator/engine/verdict/sanitized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/revision/revision.h"
#include "profiles/embedded.h"
#include "tests/orchestrator/engine/campaign_script.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

v1::Bundle ManyVariants() {
  v1::Bundle bundle = TinyBundle();
  for (const int value : {8, 16, 32, 64, 128}) bundle.mutable_variables(1)->add_values(value);
  bundle.clear_constraints();
  return bundle;
}

v1::CampaignSpec Spec(int iterations = 0) {
  v1::CampaignSpec spec;
  spec.mutable_goal()->set_speedup(100);
  spec.mutable_budget()->set_iterations(iterations);
  return spec;
}

// A campaign whose worker leaves compute-sanitizer for later.
class SanitizedTest : public testing::Test {
 protected:
  explicit SanitizedTest(const v1::CampaignSpec& spec = Spec()) : script_(spec, ManyVariants()) {
    script_.Run(MeasuredStart(100));
  }

  v1::Iteration Keep() {
    v1::TrialResult result = Measured(us_, us_ * 0.9);
    us_ *= 0.9;
    result.set_sanitize_later(true);
    v1::Iteration kept = script_.Run(result);
    EXPECT_EQ(kept.verdict(), v1::KEPT) << kept.reason();
    EXPECT_TRUE(kept.unsanitized());
    return kept;
  }

  // The plan that the campaign makes next must be for the sanitizer; what it finds, by iteration, of the others
  // nothing.
  v1::TrialPlanned Plan() {
    const std::optional<v1::Event> event = script_.Decide();
    EXPECT_TRUE(event && event->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE)
        << (event ? event->ShortDebugString() : "nothing");
    return event ? event->planned() : v1::TrialPlanned();
  }
  void Sanitize(const std::map<int, v1::Check>& failures = {}) {
    const v1::TrialPlanned planned = Plan();
    script_.Lease(planned.trial());
    v1::TrialResult result;
    for (const int number : planned.unsanitized()) {
      v1::SanitizedVariant& found = *result.add_sanitized_variants();
      found.set_iteration(number);
      if (!failures.contains(number)) continue;
      found.mutable_failure()->set_check(failures.at(number));
      found.mutable_failure()->set_message("a hazard");
    }
    script_.Finish(planned.trial(), result);
  }

  // As where too many workers were lost while they ran it.
  void PutAside() {
    const v1::TrialPlanned planned = Plan();
    v1::Event event;
    event.mutable_finished()->set_trial(planned.trial());
    for (v1::RevisedIteration& revised : UnsanitizedFor(script_.state(), planned, "3 workers were lost")) {
      *event.mutable_finished()->add_revised() = std::move(revised);
    }
    script_.Apply(event);
  }

  CampaignScript script_;
  double us_ = 100;
};

TEST_F(SanitizedTest, RunsOverSeveralKeptVariantsAtOnce) {
  for (int i = 0; i < 4; ++i) Keep();
  EXPECT_THAT(script_.state().unsanitized(), ElementsAre(1, 2, 3, 4));
  const v1::TrialPlanned planned = Plan();
  EXPECT_THAT(planned.unsanitized(), ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE(planned.has_parent());
  EXPECT_FALSE(script_.Decide()) << "one thing at a time";
}

// The start of a campaign whose worker leaves it for later as well.
v1::TrialResult UnsanitizedStart() {
  v1::TrialResult result = MeasuredStart(100);
  result.set_sanitize_later(true);
  return result;
}

TEST(SanitizedStartTest, IsSanitizedWithWhatIsKeptFirst) {
  CampaignScript script(Spec(), ManyVariants());
  EXPECT_TRUE(script.Run(UnsanitizedStart()).unsanitized());
  double us = 100;
  for (int i = 0; i < 3; ++i, us *= 0.9) {
    v1::TrialResult faster = Measured(us, us * 0.9);
    faster.set_sanitize_later(true);
    EXPECT_EQ(script.Run(faster).verdict(), v1::KEPT);
  }
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE);
  EXPECT_THAT(event->planned().unsanitized(), ElementsAre(0, 1, 2, 3));
}

TEST(SanitizedStartTest, IsSanitizedSoonHoweverLittleIsKept) {
  CampaignScript script(Spec(), ManyVariants());
  script.Run(UnsanitizedStart());
  for (int i = 0; i < 6; ++i) EXPECT_EQ(script.Run(Measured(100, 120)).verdict(), v1::REVERTED);
  const std::optional<v1::Event> event = script.Decide();
  ASSERT_TRUE(event && event->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE);
  EXPECT_THAT(event->planned().unsanitized(), ElementsAre(0));
}

TEST(SanitizedStartTest, TakesEverythingBackWithAStartThatFails) {
  for (const v1::Check check : {v1::CHECK_MEMCHECK, v1::CHECK_TIMEOUT}) {
    SCOPED_TRACE(v1::Check_Name(check));
    CampaignScript script(Spec(1), ManyVariants());
    script.Run(UnsanitizedStart());
    EXPECT_EQ(script.Run(Measured(100, 90)).verdict(), v1::KEPT);
    const std::optional<v1::Event> event = script.Decide();
    ASSERT_TRUE(event && event->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE);
    EXPECT_THAT(event->planned().unsanitized(), ElementsAre(0));
    script.Lease(event->planned().trial());
    v1::TrialResult result;
    v1::SanitizedVariant& found = *result.add_sanitized_variants();
    found.set_iteration(0);
    found.mutable_failure()->set_check(check);
    found.mutable_failure()->set_message("out of bounds");
    script.Finish(event->planned().trial(), result);
    EXPECT_EQ(script.state().Find(1)->verdict(), v1::REJECTED);
    const std::optional<v1::Event> end = script.Decide();
    ASSERT_TRUE(end && end->has_ended());
    EXPECT_EQ(end->ended().state(), v1::FAILED);
    EXPECT_THAT(end->ended().message(), HasSubstr("the start variant was rejected"));
    EXPECT_THAT(end->ended().message(), HasSubstr("out of bounds"));
    EXPECT_FALSE(script.summary().has_best());
    EXPECT_EQ(script.summary().start_us(), 0) << "as if the start had failed at once";
  }
}

TEST(SanitizedStartTest, ThatFailsEndsTheCampaignThoughTrialsAreOpen) {
  CampaignScript script(Spec(), ManyVariants());
  script.Run(UnsanitizedStart());
  double us = 100;
  for (int i = 0; i < 3; ++i, us *= 0.9) {
    v1::TrialResult faster = Measured(us, us * 0.9);
    faster.set_sanitize_later(true);
    EXPECT_EQ(script.Run(faster).verdict(), v1::KEPT);
  }
  const std::optional<v1::Event> sanitizes = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(sanitizes && sanitizes->planned().purpose() == v1::TRIAL_PURPOSE_SANITIZE);
  script.Lease(sanitizes->planned().trial());
  const std::optional<v1::Event> beside = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(beside && beside->planned().purpose() == v1::TRIAL_PURPOSE_ITERATION);
  script.Lease(beside->planned().trial());
  v1::TrialResult result;
  for (int number = 0; number < 4; ++number) {
    v1::SanitizedVariant& found = *result.add_sanitized_variants();
    found.set_iteration(number);
    if (number == 0) found.mutable_failure()->set_check(v1::CHECK_RACECHECK);
  }
  script.Finish(sanitizes->planned().trial(), result);
  EXPECT_FALSE(script.summary().has_best()) << "nothing of it is shown as the best meanwhile";
  const std::optional<v1::Event> end = script.Decide(NeighbourChooser(), 2);
  ASSERT_TRUE(end && end->has_ended());
  EXPECT_EQ(end->ended().state(), v1::FAILED);
  EXPECT_FALSE(script.summary().has_best());
  EXPECT_TRUE(script.state().open_trials().empty());
}

TEST_F(SanitizedTest, ForgetsWhatPassed) {
  for (int i = 0; i < 4; ++i) Keep();
  const v1::Iteration before = *script_.state().Find(4);
  Sanitize();
  EXPECT_THAT(script_.state().unsanitized(), IsEmpty());
  const v1::Iteration& after = *script_.state().Find(4);
  EXPECT_EQ(after.verdict(), v1::KEPT);
  EXPECT_FALSE(after.unsanitized());
  EXPECT_EQ(after.reason(), before.reason());
  EXPECT_EQ(script_.summary().best(), 4);
  Keep();
}

TEST_F(SanitizedTest, TakesBackWhatWasBuiltOnAFailure) {
  for (int i = 0; i < 4; ++i) Keep();
  Sanitize({{3, v1::CHECK_RACECHECK}});
  EXPECT_EQ(script_.state().Find(2)->verdict(), v1::KEPT);
  const v1::Iteration& failed = *script_.state().Find(3);
  EXPECT_EQ(failed.verdict(), v1::REJECTED);
  EXPECT_EQ(failed.failure().check(), v1::CHECK_RACECHECK);
  ASSERT_EQ(failed.failed_gates_size(), 1);
  EXPECT_EQ(failed.failed_gates(0).gate(), "sanitizer");
  const v1::Iteration& built_on_it = *script_.state().Find(4);
  EXPECT_EQ(built_on_it.verdict(), v1::REJECTED);
  EXPECT_THAT(built_on_it.reason(), HasSubstr("it was built on iteration 3, which was rejected: a hazard"));
  EXPECT_EQ(script_.summary().best(), 2);
  EXPECT_THAT(script_.state().unsanitized(), IsEmpty());
}

TEST_F(SanitizedTest, PausesOnceForAllThatOneFailureTakesBackWhereTheGatePauses) {
  for (int i = 0; i < 4; ++i) Keep();
  const v1::TrialPlanned planned = Plan();
  script_.Lease(planned.trial());
  v1::Event event;
  event.mutable_finished()->set_trial(planned.trial());
  v1::TrialResult& result = *event.mutable_finished()->mutable_result();
  for (const int number : planned.unsanitized()) {
    v1::SanitizedVariant& found = *result.add_sanitized_variants();
    found.set_iteration(number);
    if (number == 2) found.mutable_failure()->set_check(v1::CHECK_MEMCHECK);
  }
  std::string toml(embedded::kGatesToml);
  const size_t action = toml.find("\"reject\"", toml.find("= \"sanitizer\""));
  const Gates pausing = Gates::Parse(toml.replace(action, 8, "\"pause\""), "gates.toml").value();
  for (v1::RevisedIteration& revised : JudgeSanitized(script_.state(), planned, result, pausing)) {
    *event.mutable_finished()->add_revised() = std::move(revised);
  }
  script_.Apply(event);
  const std::optional<v1::Event> paused = script_.Decide();
  ASSERT_TRUE(paused && paused->has_paused());
  EXPECT_THAT(paused->paused().reason(), HasSubstr("iteration 2 did not pass the gate sanitizer"));
  EXPECT_THAT(paused->paused().reason(), HasSubstr("; neither did iterations 3, 4 pass such a gate"));
  script_.Resume();
  const std::optional<v1::Event> next = script_.Decide();
  EXPECT_TRUE(next && next->has_planned()) << "one pause was for all";
}

TEST_F(SanitizedTest, SearchesNoFurtherFromWhatWasRevertedOnTopOfAFailure) {
  for (int i = 0; i < 3; ++i) Keep();
  EXPECT_EQ(script_.Run(Measured(us_, us_ * 1.2)).verdict(), v1::REVERTED);
  Keep();
  Sanitize({{3, v1::CHECK_INITCHECK}});
  EXPECT_EQ(script_.summary().best(), 2);
  EXPECT_EQ(script_.state().Find(4)->verdict(), v1::REJECTED);
  EXPECT_FALSE(script_.state().IsMeasured(*script_.state().Find(4)));
}

class ShortSanitizedTest : public SanitizedTest {
 protected:
  ShortSanitizedTest() : SanitizedTest(Spec(2)) {}
};

TEST_F(ShortSanitizedTest, ComesBeforeTheCampaignClaimsItsBest) {
  Keep();
  Keep();
  Sanitize({{2, v1::CHECK_MEMCHECK}});
  EXPECT_EQ(script_.summary().best(), 1);
  const std::optional<v1::Event> total = script_.Decide();
  ASSERT_TRUE(total && total->has_planned()) << "the budget is used up";
  EXPECT_EQ(total->planned().purpose(), v1::TRIAL_PURPOSE_TOTAL) << "it runs over the best at large sizes";
  script_.FinishTotal(Measured(100, 90));
  const std::optional<v1::Event> end = script_.Decide();
  ASSERT_TRUE(end && end->has_ended());
  EXPECT_EQ(end->ended().state(), v1::FINISHED);
}

TEST_F(ShortSanitizedTest, ClaimsNothingOfWhichAWorkerSaysNothing) {
  Keep();
  Keep();
  const v1::TrialPlanned planned = Plan();
  script_.Lease(planned.trial());
  script_.Finish(planned.trial(), v1::TrialResult());
  EXPECT_EQ(script_.summary().best(), 0);
  EXPECT_THAT(script_.state().Find(1)->reason(), HasSubstr("compute-sanitizer could not run over it"));
}

TEST_F(ShortSanitizedTest, ClaimsNothingThatWorkersWereLostBy) {
  Keep();
  Keep();
  PutAside();
  EXPECT_THAT(script_.state().unsanitized(), ElementsAre(1, 2)) << "it may be the fault of one";
  EXPECT_EQ(script_.summary().best(), 2);
  PutAside();
  EXPECT_EQ(script_.state().Find(1)->verdict(), v1::REJECTED);
  EXPECT_THAT(script_.state().Find(1)->reason(), HasSubstr("3 workers were lost"));
  EXPECT_EQ(script_.state().Find(2)->verdict(), v1::KEPT) << "nothing was found that it could have inherited";
  Sanitize();
  EXPECT_EQ(script_.summary().best(), 2);
  EXPECT_THAT(script_.state().unsanitized(), IsEmpty());
  EXPECT_FALSE(script_.state().sanitizes_alone());
}

TEST_F(ShortSanitizedTest, RejectsNothingThatWasBuiltOnWhatIsTooSlowForTheTools) {
  Keep();
  Keep();
  Sanitize({{1, v1::CHECK_TIMEOUT}});
  EXPECT_EQ(script_.state().Find(1)->verdict(), v1::REJECTED);
  EXPECT_EQ(script_.state().Find(1)->failed_gates(0).gate(), "sanitizer");
  EXPECT_EQ(script_.summary().best(), 2);
}

// While iteration 1, a change of the start, is measured, 2 and its child 3 are kept. 1 has to be compared with 3.
class RivalSanitizedTest : public SanitizedTest {
 protected:
  RivalSanitizedTest() : SanitizedTest(Spec(3)) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(script_.Decide(NeighbourChooser(), 2));
    for (const int trial : {2, 3}) script_.Lease(trial);
    EXPECT_EQ(FinishLater(3, 100, 80).verdict(), v1::KEPT);
    EXPECT_TRUE(script_.Decide(NeighbourChooser(), 2));
    script_.Lease(4);
    EXPECT_EQ(FinishLater(4, 80, 40).verdict(), v1::KEPT);
    EXPECT_EQ(FinishLater(2, 100, 30).verdict(), v1::REVERTED);
    const std::optional<v1::Event> end = script_.Decide();
    EXPECT_TRUE(end && end->planned().purpose() == v1::TRIAL_PURPOSE_END);
    end_ = end ? end->planned().trial() : 0;
    script_.Lease(end_);
  }
  v1::Iteration FinishLater(int trial, double parent_us, double us) {
    v1::TrialResult result = Measured(parent_us, us);
    result.set_sanitize_later(true);
    return script_.Finish(trial, result);
  }

  int end_ = 0;  // the trial that compares them
};

TEST_F(RivalSanitizedTest, RejectsNothingThatWasOnlyComparedWithAFailure) {
  EXPECT_EQ(FinishLater(end_, 40, 45).verdict(), v1::REVERTED);
  Sanitize({{3, v1::CHECK_RACECHECK}});
  EXPECT_EQ(script_.summary().best(), 2);
  EXPECT_EQ(script_.state().Find(1)->verdict(), v1::REVERTED) << script_.state().Find(1)->reason();
  const std::optional<v1::Event> next = script_.Decide();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->planned().purpose(), v1::TRIAL_PURPOSE_END) << "it is compared with what is the best now";
  EXPECT_EQ(next->planned().iteration(), 1);
  EXPECT_EQ(next->planned().parent(), 2);
}

TEST_F(RivalSanitizedTest, KeepsWhatBeatAFailureWithoutDescendingFromIt) {
  EXPECT_EQ(FinishLater(end_, 40, 30).verdict(), v1::KEPT);
  Sanitize({{2, v1::CHECK_RACECHECK}});
  EXPECT_EQ(script_.state().Find(3)->verdict(), v1::REJECTED) << "it descends from 2";
  EXPECT_EQ(script_.summary().best(), 1);
  EXPECT_THAT(script_.state().unsanitized(), IsEmpty());
}

TEST_F(RivalSanitizedTest, BringsBackNothingThatWasRejectedWhileItWasCompared) {
  v1::Event planned;
  planned.mutable_planned()->set_trial(99);
  planned.mutable_planned()->set_purpose(v1::TRIAL_PURPOSE_SANITIZE);
  planned.mutable_planned()->set_iteration(3);
  planned.mutable_planned()->add_unsanitized(3);
  script_.Apply(planned);
  v1::Event event;
  event.mutable_finished()->set_trial(99);
  v1::RevisedIteration& rejected = *event.mutable_finished()->add_revised();
  rejected = Unrevised(*script_.state().Find(1));
  rejected.set_verdict(v1::REJECTED);
  rejected.set_unsanitized(false);
  script_.Apply(event);
  ASSERT_EQ(script_.state().Find(1)->verdict(), v1::REJECTED);
  EXPECT_EQ(FinishLater(end_, 40, 30).verdict(), v1::REJECTED);
  EXPECT_EQ(script_.summary().best(), 3);
}

class PatientSanitizedTest : public SanitizedTest {
 protected:
  static v1::CampaignSpec TwoInARow() {
    v1::CampaignSpec spec = Spec();
    spec.mutable_budget()->set_reverts_in_a_row(2);
    return spec;
  }
  PatientSanitizedTest() : SanitizedTest(TwoInARow()) {}
};

TEST_F(PatientSanitizedTest, GoesOnWhereWhatOthersWereMeasuredAgainstIsGone) {
  Keep();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(script_.Run(Measured(us_, us_ * 1.2)).verdict(), v1::REVERTED);
  Sanitize({{1, v1::CHECK_RACECHECK}});
  EXPECT_EQ(script_.summary().best(), 0);
  const std::optional<v1::Event> next = script_.Decide();
  ASSERT_TRUE(next && next->has_planned()) << (next ? next->ShortDebugString() : "nothing");
  EXPECT_EQ(next->planned().parent(), 0);
}

TEST_F(SanitizedTest, IsDoneWhereTheLastOfThemIsTakenBackByAnother) {
  for (int i = 0; i < 4; ++i) Keep();
  PutAside();
  ASSERT_TRUE(script_.state().sanitizes_alone());
  for (int i = 0; i < 3; ++i) Sanitize();
  EXPECT_THAT(script_.state().unsanitized(), ElementsAre(4));
  const v1::TrialPlanned planned = Plan();
  v1::Event event;  // as of the seat
  event.mutable_finished()->set_trial(planned.trial());
  *event.mutable_finished()->add_revised() = Unrevised(*script_.state().Find(4));
  event.mutable_finished()->mutable_revised(0)->set_verdict(v1::REJECTED);
  script_.Apply(event);
  EXPECT_FALSE(script_.state().sanitizes_alone());
  const std::optional<v1::Event> next = script_.Decide();
  ASSERT_TRUE(next);
  EXPECT_NE(next->event_case(), v1::Event::EVENT_NOT_SET);
}

TEST_F(SanitizedTest, BuildsOnNoMoreThanEightWhileItWaitsForTheTools) {
  for (int i = 0; i < 4; ++i) Keep();
  ASSERT_EQ(Plan().unsanitized_size(), 4);
  while (script_.state().unsanitized().size() < 8) {
    const std::optional<v1::Event> next = script_.Decide(NeighbourChooser(), 2);
    ASSERT_TRUE(next && next->has_planned());
    if (next->planned().purpose() == v1::TRIAL_PURPOSE_TOTAL) {
      script_.FinishTotal(Measured(100, us_));
      continue;
    }
    const int trial = next->planned().trial();
    script_.Lease(trial);
    v1::TrialResult result = Measured(us_, us_ * 0.9);
    us_ *= 0.9;
    result.set_sanitize_later(true);
    ASSERT_EQ(script_.Finish(trial, result).verdict(), v1::KEPT);
  }
  const std::optional<v1::Event> next = script_.Decide(NeighbourChooser(), 2);
  EXPECT_FALSE(next) << next->ShortDebugString();
}

class ProposedSanitizedTest : public SanitizedTest {
 protected:
  static v1::CampaignSpec Outside() {
    v1::CampaignSpec spec = Spec();
    spec.mutable_chooser()->set_kind(v1::CHOOSER_KIND_OUTSIDE);
    spec.mutable_chooser()->set_wait_seconds(60);
    return spec;
  }
  ProposedSanitizedTest() : SanitizedTest(Outside()) {}
};

TEST_F(ProposedSanitizedTest, RunsWhileTheCampaignWaitsForAProposal) {
  script_.Propose("TILE", 64);
  Keep();
  Sanitize();
  EXPECT_FALSE(script_.Decide()) << "it waits";
  script_.Propose("TILE", 16);
  EXPECT_TRUE(script_.Decide()->planned().has_parent());
}

}  // namespace
}  // namespace pawl
