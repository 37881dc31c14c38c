// A goal over several sizes: what a trial times, in which order, and when it stops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "tests/worker/trial/scripted_gpu.h"
#include "worker/trial/trial_pipeline.h"
#include "worker/validate/input_draws.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrialSizesTest : public testing::Test {
 protected:
  TrialSizesTest() {
    (*trial_.mutable_variant()->mutable_values())["TILE"] = 64;
    (*trial_.mutable_parent()->mutable_values())["TILE"] = 32;
    trial_.set_size("main");
    (*bundle_.mutable_goal()->mutable_sizes())["small"] = 0.4;
    (*bundle_.mutable_goal()->mutable_sizes())["main"] = 0.6;
  }

  v1::TrialResult Run() {
    absl::StatusOr<std::unique_ptr<TrialBuild>> build =
        TrialBuilder(gpu_).Build(trial_, std::make_shared<const v1::Bundle>(bundle_), observer_);
    EXPECT_TRUE(build.ok()) << build.status();
    absl::StatusOr<TrialOutcome> outcome = RunTrial(gpu_, **build, observer_);
    EXPECT_TRUE(outcome.ok()) << outcome.status();
    return outcome.ok() ? outcome->result : v1::TrialResult();
  }

  // What was timed, in order: "main 12".
  std::vector<std::string> Timed() const {
    std::vector<std::string> timed;
    for (const std::string& line : gpu_.log) {
      if (absl::StartsWith(line, "compare ")) timed.push_back(line.substr(8));
    }
    return timed;
  }

  static int PairsAt(const google::protobuf::RepeatedPtrField<v1::PairSample>& pairs, const std::string& size) {
    return static_cast<int>(
        std::count_if(pairs.begin(), pairs.end(), [&](const v1::PairSample& pair) { return pair.size() == size; }));
  }

  v1::Bundle bundle_ = CopyBundle();
  v1::Trial trial_;
  ScriptedGpu gpu_;
  ScriptedObserver observer_;
};

TEST_F(TrialSizesTest, TimesEverySizeHeaviestFirstAndConfirmsAtEverySize) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "main 36", "small 12"));
  EXPECT_EQ(PairsAt(result.pairs(), "main"), 12);
  EXPECT_EQ(PairsAt(result.pairs(), "small"), 12);
  EXPECT_EQ(PairsAt(result.confirming_pairs(), "main"), 36) << "the seat test needs them";
  EXPECT_EQ(PairsAt(result.confirming_pairs(), "small"), 12) << "these show that it is faster";
  EXPECT_TRUE(result.profiled()) << "it is about to be kept";
  EXPECT_THAT(observer_.reports, Contains(HasSubstr("compare with the parent at small")));
  EXPECT_THAT(observer_.reports, Contains(HasSubstr("compare again in a fresh process at main")));
}

TEST_F(TrialSizesTest, TimesNothingBeforeItIsValidatedAtEverySize) {
  gpu_.failures["call main x2"].set_check(v1::CHECK_FAULT);
  EXPECT_TRUE(Run().has_failure());
  EXPECT_THAT(Timed(), IsEmpty());
}

TEST_F(TrialSizesTest, KeepsTheTimesOfTheSizeThatStandsForAll) {
  gpu_.at_size["main"] = {.candidate_us = 150, .parent_us = 200};
  gpu_.at_size["small"] = {.candidate_us = 9, .parent_us = 10};
  const v1::TrialResult result = Run();
  EXPECT_NEAR(result.warm_us(), 150, 1);
  EXPECT_NEAR(result.parent_warm_us(), 200, 1);
}

TEST_F(TrialSizesTest, StopsWhenNoGainElsewhereCouldMakeUpForALoss) {
  gpu_.at_size["main"] = {.candidate_us = 300, .parent_us = 200};
  const v1::TrialResult result = Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12"));
  EXPECT_FALSE(result.has_failure()) << "it is right, only slow";
  EXPECT_FALSE(result.profiled());
}

TEST_F(TrialSizesTest, MeasuresAllPairsOfASizeWhereTheCandidateIsMuchSlower) {
  trial_.set_purpose(v1::TRIAL_PURPOSE_ITERATION);
  gpu_.at_size["main"] = {.candidate_us = 300, .parent_us = 200};
  EXPECT_EQ(PairsAt(Run().pairs(), "main"), 12);
}

TEST_F(TrialSizesTest, GoesOnWhereAGainElsewhereCould) {
  gpu_.at_size["main"] = {.candidate_us = 220, .parent_us = 200};
  gpu_.at_size["small"] = {.candidate_us = 100, .parent_us = 200};
  EXPECT_TRUE(Run().profiled());
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "main 36", "small 12"));
}

// Relative to the witness, over both sizes.
v1::SeatTime AsCandidate(double small, double main, int calls = 0) {
  v1::SeatTime time;
  time.set_log_time(0.4 * std::log(small) + 0.6 * std::log(main));
  time.set_processes(2);
  time.set_calls(calls);
  return time;
}

TEST_F(TrialSizesTest, TimesTheWitnessAtEverySize) {
  (*trial_.mutable_witness()->mutable_values())["TILE"] = 32;
  *trial_.mutable_parent_as_candidate() = AsCandidate(200.0 / 210, 200.0 / 210);
  trial_.mutable_noise()->set_variance(4e-6);
  trial_.mutable_noise()->set_degrees(6);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "main 36 witness", "small 12 witness"));
  for (const v1::PairSample& pair : result.confirming_pairs()) EXPECT_EQ(pair.witness_us(), 210) << pair.size();
}

TEST_F(TrialSizesTest, AsksFurtherProcessesWhereALighterSizeLeavesTheSeatInDoubt) {
  (*trial_.mutable_witness()->mutable_values())["TILE"] = 32;
  // Now 3.5 % more at small, 1.4 % in the mean: neither noise nor a bias of 2 %.
  *trial_.mutable_parent_as_candidate() = AsCandidate(200.0 / 210 / 1.035, 200.0 / 210);
  trial_.mutable_noise()->set_variance(9e-6);
  trial_.mutable_noise()->set_degrees(6);
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "main 36 witness", "small 12 witness", "main 36 witness",
                                   "small 12 witness", "main 36 witness", "small 12 witness"));
}

TEST_F(TrialSizesTest, TimesTheParentAloneAtEverySizeWhereCallsAreTimedInAnotherWayAtOne) {
  (*trial_.mutable_witness()->mutable_values())["TILE"] = 32;
  *trial_.mutable_parent_as_candidate() = AsCandidate(1, 1, 802);  // 8 calls at small, 2 at main
  gpu_.at_size["main"] = {.candidate_us = 180, .parent_us = 200, .calls = 2};
  // A graph of 8 calls would take 32 us: another number is found.
  gpu_.at_size["small"] = {.candidate_us = 4, .parent_us = 5, .witness_us = 6, .calls = 13};
  const v1::TrialResult result = Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "small 12", "main 36 witness", "small 12 witness", "small 12",
                                   "main 12", "small 12", "main 12", "small 12", "main 12", "small 12", "main 12"));
  EXPECT_EQ(result.parent_again().processes(), 2) << "as it was as a candidate: it may have become slower";
  EXPECT_EQ(result.parent_again().calls(), 802);
  EXPECT_EQ(result.parent_alone().processes(), 2);
  EXPECT_EQ(result.parent_alone().calls(), 1302);
  EXPECT_NEAR(result.parent_alone().log_time(), 0.4 * std::log(4 / 5.0) + 0.6 * std::log(180 / 200.0), 1e-6);
  gpu_.at_size["small"] = {.candidate_us = 8, .parent_us = 10, .witness_us = 11, .calls = 13};
  EXPECT_FALSE(Run().has_parent_alone()) << "timed as it was as a candidate";
}

// Sizes beside both that are timed: hidden ones end at 8.
TEST_F(TrialSizesTest, ValidatesBesideEverySizeWithOtherInputsToo) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  std::set<std::string> beside, others;
  gpu_.wrong = [&](const v1::Plan& plan, const v1::InputDraw& draw) {
    const std::string at = absl::StartsWith(plan.size(), "beside small")  ? "small"
                           : absl::StartsWith(plan.size(), "beside main") ? "main"
                                                                          : "";
    if (at.empty()) return false;
    beside.insert(at);
    if (draw.distribution() != v1::DISTRIBUTION_UNSPECIFIED) others.insert(v1::Distribution_Name(draw.distribution()));
    return false;
  };
  EXPECT_FALSE(Run().has_failure());
  EXPECT_THAT(beside, ElementsAre("main", "small"));
  EXPECT_EQ(others.size(), DistributionsFor(bundle_).size()) << "each at one of the two";
}

// Where the candidate is wrong, the start is asked after it.
std::function<bool(const v1::Plan&, const v1::InputDraw&)> CandidateIsWrong(const std::string& at,
                                                                            v1::Distribution distribution) {
  return [=, checked = 0](const v1::Plan& plan, const v1::InputDraw& draw) mutable {
    return absl::StartsWith(plan.size(), at) && draw.distribution() == distribution && ++checked == 1;
  };
}

TEST_F(TrialSizesTest, RejectsWhatIsWrongBesideALighterSize) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  gpu_.wrong = CandidateIsWrong("beside small", v1::DISTRIBUTION_UNSPECIFIED);
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_TOLERANCE);
  EXPECT_THAT(result.failure().size(), HasSubstr("beside small"));
}

TEST_F(TrialSizesTest, RejectsWhatIsWrongWithOtherInputsBesideATimedSize) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  gpu_.wrong = CandidateIsWrong("beside", v1::DISTRIBUTION_SORTED);
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_TOLERANCE);
  EXPECT_THAT(result.failure().message(), HasSubstr("sorted"));
}

TEST_F(TrialSizesTest, GoesOnToTheNextSizeWhereTheStartIsWrongBesideOne) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  gpu_.wrong = [](const v1::Plan& plan, const v1::InputDraw&) {
    return absl::StartsWith(plan.size(), "beside small");  // of both
  };
  EXPECT_FALSE(Run().has_failure());
  gpu_.wrong = [main = CandidateIsWrong("beside main", v1::DISTRIBUTION_UNSPECIFIED)](const v1::Plan& plan,
                                                                                      const v1::InputDraw& draw) {
    return absl::StartsWith(plan.size(), "beside small") || main(plan, draw);
  };
  EXPECT_THAT(Run().failure().size(), HasSubstr("beside main"));
}

TEST_F(TrialSizesTest, HoldsItsOwnFillAgainstAStartThatIsWrongWithOtherInputsOnly) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  gpu_.wrong = [own = CandidateIsWrong("beside small", v1::DISTRIBUTION_UNSPECIFIED)](const v1::Plan& plan,
                                                                                      const v1::InputDraw& draw) {
    const bool others = draw.distribution() != v1::DISTRIBUTION_UNSPECIFIED;
    return own(plan, draw) || (absl::StartsWith(plan.size(), "beside") && others);
  };
  EXPECT_EQ(Run().failure().check(), v1::CHECK_TOLERANCE);
}

// One that does not build at a size is built at each alone.
TEST_F(TrialSizesTest, RejectsWhatDoesNotBuildBesideOneOfTheSizes) {
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  bundle_.mutable_source()->set_text(
      "extern \"C\" __global__ void copy(const float* in, float* out, int n) { SIZE_N; }\n");
  v1::BuildReply failed;
  failed.mutable_failure()->set_check(v1::CHECK_COMPILE);
  for (int n = 992; n < 1000; ++n) gpu_.builds["-DTILE=64 -DSIZE_N=" + std::to_string(n)] = failed;
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_COMPILE) << ::testing::PrintToString(gpu_.compiled());
  EXPECT_THAT(result.failure().size(), HasSubstr("beside small"));
}

TEST_F(TrialSizesTest, MeasuresMoreAtTheOtherSizesWhereItIsOpenWhetherItIsFaster) {
  gpu_.processes = {{.candidate_us = 197.4, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_EQ(PairsAt(result.confirming_pairs(), "main"), PairsAt(result.confirming_pairs(), "small"));
  EXPECT_GE(PairsAt(result.confirming_pairs(), "small"), 36);
}

TEST_F(TrialSizesTest, StopsAtASizeThatLosesMoreThanTheGoalAllows) {
  bundle_.mutable_goal()->set_worst(0.95);
  gpu_.at_size["main"] = {.candidate_us = 220, .parent_us = 200};
  gpu_.at_size["small"] = {.candidate_us = 100, .parent_us = 200};
  EXPECT_FALSE(Run().profiled());
  EXPECT_THAT(Timed(), ElementsAre("main 12"));
}

TEST_F(TrialSizesTest, DoesNotConfirmWhatLosesTooMuchAtTheLastSize) {
  bundle_.mutable_goal()->set_worst(0.95);
  gpu_.at_size["main"] = {.candidate_us = 150, .parent_us = 200};
  gpu_.at_size["small"] = {.candidate_us = 220, .parent_us = 200};
  Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12"));
}

TEST_F(TrialSizesTest, RejectsATimeBelowTheRooflineAtAnySize) {
  bundle_.set_work_bytes("8 * N + 1e9");
  gpu_.at_size["main"] = {.candidate_us = 800, .parent_us = 1000};
  gpu_.at_size["small"] = {.candidate_us = 1, .parent_us = 1.2};
  const v1::TrialResult result = Run();
  EXPECT_EQ(result.failure().check(), v1::CHECK_ROOFLINE);
  EXPECT_EQ(result.failure().size(), "small");
}

TEST_F(TrialSizesTest, TimesTheStartAndTheBaselineAtEverySize) {
  trial_.clear_parent();
  (*trial_.mutable_variant()->mutable_values())["TILE"] = 32;
  const v1::TrialResult result = Run();
  EXPECT_FALSE(result.has_failure()) << result.failure().message();
  EXPECT_THAT(Timed(), ElementsAre("small 12", "main 12"));
  EXPECT_EQ(PairsAt(result.pairs(), "small"), 12);
  EXPECT_EQ(result.baselines_size(), 2);
  EXPECT_EQ(result.warm_us(), 200) << "of the size that stands for all";
}

TEST_F(TrialSizesTest, MeasuresTheWinnerWholeBesideStartAndBaseline) {
  trial_.set_purpose(v1::TRIAL_PURPOSE_TOTAL);
  bundle_.mutable_goal()->set_worst(0.95);
  gpu_.at_size["main"] = {.candidate_us = 300, .parent_us = 200};  // slower: that must be seen at every size
  gpu_.at_size["small"] = {.candidate_us = 100, .parent_us = 200};
  const v1::TrialResult result = Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "small 12", "main 36", "small 36"));
  EXPECT_THAT(gpu_.log, Contains("memcheck small"));
  EXPECT_THAT(gpu_.log, Contains("memcheck main"));
  EXPECT_THAT(gpu_.log, Contains("baseline beside small"));
  EXPECT_THAT(gpu_.log, Contains("baseline beside main"));
  ASSERT_EQ(result.sizes_size(), 2);
  EXPECT_EQ(result.sizes(0).size(), "small");
  EXPECT_NEAR(result.sizes(0).start_us(), 200, 1);
  EXPECT_NEAR(result.sizes(0).best_us(), 100, 1);
  EXPECT_NEAR(result.sizes(0).baseline_us(), 1.5 * result.sizes(0).best_us(), 1e-6);
  ASSERT_EQ(result.beside_baseline().log_ratios_size(), 24);
  EXPECT_NEAR(result.beside_baseline().log_ratios(0), std::log(1.5), 1e-9) << "the weights are of sum 1";
}

TEST_F(TrialSizesTest, TimesOneSizeWhereTheCampaignAsksForThatOne) {
  bundle_.mutable_goal()->clear_sizes();
  gpu_.processes = {{.candidate_us = 180, .parent_us = 200}};
  const v1::TrialResult result = Run();
  EXPECT_THAT(Timed(), ElementsAre("main 12", "main 36"));
  EXPECT_EQ(PairsAt(result.pairs(), ""), 12) << "as ever";
}

TEST(InformativeFirst, PrefersWhatTellsMoreOfTheObjectiveInLessTime) {
  const std::vector<SizeWeight> sizes = {{"tiny", 0.2}, {"main", 0.4}, {"large", 0.4}};
  const auto names = [](const std::vector<SizeWeight>& ordered) {
    std::vector<std::string> all;
    for (const SizeWeight& size : ordered) all.push_back(size.size);
    return all;
  };
  EXPECT_THAT(names(InformativeFirst(sizes, {})), ElementsAre("main", "large", "tiny"));
  EXPECT_THAT(names(InformativeFirst(sizes, {{"tiny", 0.1}, {"main", 1}, {"large", 10}})),
              ElementsAre("tiny", "main", "large"));
  EXPECT_THAT(names(InformativeFirst(sizes, {{"tiny", 0.001}, {"main", 0.002}, {"large", 0.001}})),
              ElementsAre("main", "large", "tiny"))
      << "less than a process takes to begin is no difference";
}

}  // namespace
}  // namespace pawl
