#include "cli/text/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "cli/text/layout.h"
#include "cli/text/situation_text.h"
#include "cli/text/why_not.h"
#include "tests/cli/some_iterations.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int Widest(const std::string& text) {
  int widest = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    widest = std::max(widest, DisplayWidth(line));
  }
  return widest;
}

TEST(ParagraphTest, BreaksAtSpacesBelowItsBeginning) {
  EXPECT_EQ(Paragraph("  why  ", "one two three", 15), "  why  one two\n       three\n");
  EXPECT_EQ(Paragraph("→ ", "a-word-that-is-longer than the line", 10),
            "→ a-word-that-is-longer\n  than the\n  line\n");
  EXPECT_EQ(Paragraph("a ", "one\ntwo", 0), "a one two\n");
  EXPECT_EQ(Paragraph("a ", "", 10), "a\n");
}

TEST(IterationExplanationTest, TellsWhatWasSeenConsideredPredictedAndMeasured) {
  EXPECT_EQ(IterationExplanation(ExplainedIteration(), false, 100),
            R"(campaigns/7/iterations/4: TILE_M 64→128 from iteration 1, kept
  variant    TILE_M=128 WARPS=4
  device     NVIDIA H200
  chosen by  pawl: grid-too-small: TILE_M from 64 to 128 gives less parallelism

Findings in the evidence of iteration 1
  grid-too-small (parallelism): addressed by this change, which gives parallelism+
    finding The grid fills 0.015 of a wave: 2 blocks for 132 SMs
    values  waves 0.01515 < 1
    wants   parallelism+; 1.52 % of it is reached
    ncu     LaunchConfiguration estimates a speedup of 97 %
  barrier-stalls (compute)
    finding Warps wait at barriers

Ranking of the changes, by what they can add to the best variant (log speedup)
  change         improvement    mean     sd   rules   model  patterns
  TILE_M 64→128       0.5200  +0.520  0.100  +0.497  +0.023         0  chosen
  WARPS 4→8           0.1200  +0.120  0.150  +0.100  -0.080    +0.100  ranks lower
  - a constraint forbids it: WARPS 4→1, WARPS 4→2

Prediction
  expected   1.10x to 4.00x as fast as its parent, and waves rises
  outcome    failed: 1.200x as predicted, waves did not rise (0.01515 → 0.007576)

Outcome
  verdict    kept: faster: 1.15 to 1.25
  time       11.18 us (parent 13.42 us in the same run); 1.800x over the start
  compared   faster, 1.200x over its parent: 1.150x to 1.250x in 7 pairs
  gate       prediction (mark): waves fell
  stages     build 0.37 s
)");
}

TEST(IterationExplanationTest, NamesWhatAFailedPredictionGotWrong) {
  v1::Iteration iteration = ExplainedIteration();
  iteration.set_speedup_over_parent(1.05);
  iteration.mutable_prediction()->set_time_outcome(v1::Prediction::FAILED);
  iteration.mutable_prediction()->set_metric_outcome(v1::Prediction::CAME_TRUE);
  iteration.mutable_prediction()->set_after(2);
  EXPECT_THAT(IterationExplanation(iteration, false, 100),
              HasSubstr("outcome    failed: 1.050x is below the predicted 1.10x, waves 0.01515 → 2 as predicted\n"));
}

TEST(IterationExplanationTest, ShowsTheMostPromisingFirstAndCountsTheRest) {
  v1::Iteration iteration = ExplainedIteration();
  for (int i = 0; i < 20; ++i) {
    v1::PassedOver* passed = iteration.add_passed_over();
    passed->mutable_change()->set_variable("V");
    passed->mutable_change()->set_to(i);
    passed->set_reason("ranks lower");
    passed->mutable_score()->set_model(i * 0.02);
  }
  const std::string text = IterationExplanation(iteration, false, 100);
  EXPECT_LT(text.find("V →19"), text.find("V →18"));
  EXPECT_THAT(text, Not(HasSubstr("V →1 ")));
  EXPECT_THAT(text, HasSubstr("  and 10 more (--all)\n"));
  EXPECT_THAT(IterationExplanation(iteration, true, 100), HasSubstr("  V →1 "));
}

TEST(IterationExplanationTest, ExplainsTheStartAndWhatNobodyRanked) {
  const std::string start = IterationExplanation(SomeIterations()[0], false, 100);
  EXPECT_THAT(start, HasSubstr("campaigns/7/iterations/0: start, kept\n"));
  EXPECT_THAT(start, Not(HasSubstr("Ranking")));
  v1::Iteration proposed = SomeIterations()[2];
  proposed.set_author("ada");
  proposed.set_why("smaller tiles");
  const std::string text = IterationExplanation(proposed, false, 100);
  EXPECT_THAT(text, HasSubstr("  chosen by  ada: smaller tiles\n"));
  EXPECT_THAT(text, HasSubstr("  The change was not ranked.\n"));
  EXPECT_THAT(text, HasSubstr("  None: the change was not chosen by a rule.\n"));
}

TEST(IterationExplanationTest, StaysWithinTheWidth) {
  v1::Iteration iteration = ExplainedIteration();
  iteration.set_why(std::string(60, 'x') + " " + std::string(60, 'y') + " and so on");
  iteration.mutable_findings(0)->set_advice(
      "Split the work further, or shrink the tile, so that each of the SMs has at "
      "least one block to run while the others wait for memory");
  iteration.mutable_passed_over(0)->set_reason(
      "the grid does not fill the GPU, and parallelism comes first, which is a "
      "longer reason than there is room for beside the score");
  iteration.mutable_failure()->set_message("two\nlines\033[31m");
  const std::string text = IterationExplanation(iteration, true, 100);
  EXPECT_LE(Widest(text), 100);
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

v1::Campaign SomeCampaign() {
  v1::Campaign campaign;
  campaign.set_name("campaigns/7");
  campaign.set_bundle("attention");
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  campaign.set_device("NVIDIA H200");
  campaign.set_state(v1::FINISHED);
  campaign.set_stop_reason(v1::STOP_REASON_ROOF);
  campaign.add_roof("dram-bound");
  campaign.set_start_us(20.12);
  campaign.set_best(4);
  campaign.set_best_us(11.18);
  campaign.set_speedup_over_start(1.8);
  campaign.set_speedup_over_baseline(0.54);
  campaign.set_tier(v1::SUCCESS_TIER_BELOW);
  v1::TotalGain* gain = campaign.mutable_total_gain();
  gain->set_iteration(4);
  gain->set_speedup_over_start(1.8);
  gain->set_multiplied(1.83);
  gain->mutable_interval()->set_lower(0.5596158);
  gain->mutable_interval()->set_upper(0.6151856);
  gain->mutable_interval()->set_pairs(15);
  return campaign;
}

TEST(CampaignExplanationTest, TellsTheStoryAndMarksTheKeptPath) {
  std::vector<v1::Iteration> iterations = SomeIterations();
  iterations[4] = ExplainedIteration();
  iterations[2].set_author("ada");
  EXPECT_EQ(CampaignExplanation(SomeCampaign(), iterations, 100),
            R"(campaigns/7: attention at main on NVIDIA H200
state      finished: the best variant is at a limit of the GPU
roof       dram-bound
start      20.12 us
best       iteration 4: 11.18 us, 1.800x over the start, 0.540x over the baseline
measured   iteration 4 against the start: 1.800x (1.750x to 1.850x in 15 pairs); estimated from the
           steps: 1.830x
tier       below: slower than the baseline

Iterations (* is on the path to the best variant)
*   0  start
       variant    TILE_M=64 WARPS=4
       measured   20.12 us
       verdict    kept: the start
*   1  TILE_M 64→32 from 0
       measured   13.41 us, 1.500x over its parent, 1.500x over the start
       verdict    kept: faster: 1.45 to 1.55
    2  TILE_M 64→16 from 1
       chosen by  ada
       measured   13.69 us, 0.980x over its parent, 1.470x over the start
       verdict    reverted: slower
    3  TILE_M 64→8 from 1
       verdict    rejected: compile: error: undefined identifier
*   4  TILE_M 64→128 from 1
       finding    grid-too-small: The grid fills 0.015 of a wave: 2 blocks for 132 SMs
       predicted  1.10x to 4.00x as fast as its parent, and waves rises: failed: 1.200x as
                  predicted, waves did not rise (0.01515 → 0.007576)
       measured   11.18 us, 1.200x over its parent, 1.800x over the start
       verdict    kept: faster: 1.15 to 1.25
       gate       prediction (mark): waves fell

Rules: changes tried and kept, and how their predictions went
rule                  tried  kept  came true  failed  unchecked
(no rule: the model)      2     1          0       0          0
(proposed by ada)         1     0          0       0          0
grid-too-small            1     1          0       1          0
)");
}

class WhyNotTest : public testing::Test {
 protected:
  absl::StatusOr<std::string> Ask(const std::string& variable, int value) const {
    return WhyNot(absl::StrCat(variable, "=", value), decision_, SomeIterations(), SomeBundle(), 100);
  }

  v1::Iteration decision_ = ExplainedIteration();
};

TEST_F(WhyNotTest, ComparesTheScoresOfWhatWasPassedOver) {
  EXPECT_EQ(*Ask("WARPS", 8), R"(Iteration 4 chose TILE_M 64→128 from iteration 1, not WARPS=8.
It was not chosen: ranks lower.
  change         improvement    mean     sd   rules   model  patterns
  TILE_M 64→128       0.5200  +0.520  0.100  +0.497  +0.023         0  chosen
  WARPS 4→8           0.1200  +0.120  0.150  +0.100  -0.080    +0.100  asked about
Its expected improvement for each second was 0.23 of that of the chosen change.
)");
}

TEST_F(WhyNotTest, NamesTheConstraintThatForbidsIt) {
  const std::string answer = *Ask("WARPS", 2);
  EXPECT_THAT(answer, HasSubstr("It was not chosen: a constraint forbids it.\n"));
  EXPECT_THAT(answer, HasSubstr("The constraint \"WARPS >= 4\" forbids it from there.\n"));
  EXPECT_THAT(*Ask("TILE_M", 256), HasSubstr("The constraint \"TILE_M <= 64 * WARPS / 2\" forbids it from there.\n"));
}

TEST_F(WhyNotTest, FindsWhatWasTriedBefore) {
  EXPECT_THAT(
      *Ask("TILE_M", 16),
      HasSubstr("The same variant was tried before: iteration 2, reverted: slower (0.980x over its parent).\n"));
}

TEST_F(WhyNotTest, ListsWhatWasTriedFromOtherParents) {
  decision_.mutable_variant()->at("WARPS") = 8;
  EXPECT_THAT(*Ask("TILE_M", 16), HasSubstr("From other parents it was tried in iteration 2 (reverted, 0.980x).\n"));
}

TEST_F(WhyNotTest, SaysWhatIsNoQuestion) {
  EXPECT_THAT(*Ask("TILE_M", 64), HasSubstr("No change: TILE_M is 64 in iteration 1 already.\n"));
  EXPECT_THAT(*Ask("TILE_M", 128), HasSubstr("TILE_M=128 was chosen: iteration 4, kept: faster"));
  EXPECT_THAT(std::string(Ask("TILE_Q", 64).status().message()),
              HasSubstr("attention has no variable TILE_Q; expected TILE_M, WARPS; did you mean TILE_M?"));
  EXPECT_THAT(std::string(Ask("WARPS", 3).status().message()),
              HasSubstr("\"3\" is not a value of WARPS; expected 1, 2, 4, 8"));
}

TEST_F(WhyNotTest, AdmitsThatADecisionDoesNotNameIt) {
  decision_.clear_passed_over();
  EXPECT_THAT(*Ask("WARPS", 8), HasSubstr("It was not among the changes that were ranked"));
  decision_.clear_score();
  decision_.set_author("ada");
  EXPECT_THAT(*Ask("WARPS", 8), HasSubstr("Nothing was ranked: the change was proposed by ada.\n"));
}

TEST(SituationTextTest, SaysWhatThereIsAndHowToPropose) {
  v1::Situation situation;
  *situation.mutable_campaign() = SomeCampaign();
  situation.mutable_campaign()->set_state(v1::RUNNING);
  situation.mutable_campaign()->clear_stop_reason();
  *situation.mutable_variables() = SomeBundle().variables();
  *situation.mutable_constraints() = SomeBundle().constraints();
  *situation.mutable_best() = ExplainedIteration();
  for (const v1::Iteration& iteration : SomeIterations()) *situation.add_tried() = iteration;
  *situation.add_findings() = ExplainedIteration().finding();
  v1::Counts& counts = *situation.mutable_campaign()->mutable_counts();
  counts.set_tried(4);
  counts.set_kept(2);
  counts.set_reverted(1);
  counts.set_rejected(1);
  situation.set_source("a\nb\n");
  situation.set_source_path("attention.cu");
  situation.set_waits(true);
  situation.mutable_deadline()->set_seconds(1000);
  v1::RankedChange* untried = situation.add_untried();
  *untried->mutable_change() = ExplainedIteration().passed_over(0).change();
  untried->set_parent(4);
  untried->mutable_score()->set_model(0.1);
  v1::ChangeProposed* proposal = situation.add_proposals();
  proposal->mutable_change()->mutable_source()->set_name("unroll-inner");
  proposal->set_author("ada");
  const std::string text =
      SituationText(situation, v1::Bundle(), " --database x.db", false, absl::FromUnixSeconds(940), 100);
  EXPECT_LE(Widest(text), 100);
  EXPECT_THAT(text, HasSubstr("campaigns/7: attention at main, running\n"));
  EXPECT_THAT(text, testing::ContainsRegex("waits      for a proposal until 00:16:40 UTC .1 min 00 s left.\n"));
  EXPECT_THAT(text, HasSubstr("tried      4: 2 kept, 1 reverted, 1 rejected\n"));
  EXPECT_THAT(
      text,
      HasSubstr("source     attention.cu, 2 lines; --checkout FOLDER writes it, with kernel.toml, to be edited\n"));
  EXPECT_THAT(text, HasSubstr("    values  waves 0.01515 < 1\n"));
  EXPECT_THAT(text, HasSubstr("  TILE_M    8 16 32 64 [128] 256                 parallelism-\n"));
  EXPECT_THAT(text, HasSubstr("  constraint WARPS >= 4\n"));
  EXPECT_THAT(text, HasSubstr("  WARPS 4→8            -  +0.100   -      0  +0.100         0\n"));
  EXPECT_THAT(text, HasSubstr("  edit unroll-inner by ada\n"));
  EXPECT_THAT(text, HasSubstr("  pawl propose 7 WARPS=8 --why \"...\" --database x.db\n"));
  EXPECT_THAT(text, HasSubstr("  pawl propose 7 --patch FILE --name NAME"));
  situation.mutable_campaign()->mutable_end_time()->set_seconds(1);
  situation.set_waits(false);
  EXPECT_THAT(SituationText(situation, v1::Bundle(), "", false, absl::FromUnixSeconds(940), 100),
              Not(HasSubstr("pawl propose")));
}

TEST(SituationTextTest, SaysFirstThatThereIsNoStartAndWhatTheContractIs) {
  v1::Situation situation;
  *situation.mutable_campaign() = SomeCampaign();
  situation.mutable_campaign()->set_state(v1::WAITING);
  situation.mutable_campaign()->clear_best();
  situation.set_waits(true);
  v1::Iteration& rejected = *situation.add_tried();
  rejected.set_number(1);
  rejected.mutable_change()->mutable_source()->set_name("first");
  rejected.set_reason("out[3] is 4, expected 5");
  v1::Bundle contract = SomeBundle();
  contract.mutable_problem()->set_path("problem.py");
  const std::string text = SituationText(situation, contract, "", false, absl::FromUnixSeconds(940), 100);
  EXPECT_LE(Widest(text), 100);
  EXPECT_LT(text.find("start      none yet: it is a contract alone"), text.find("waits      for a proposal\n"));
  EXPECT_THAT(text, HasSubstr("rejected   iteration 1, edit first: out[3] is 4, expected 5\n"));
  EXPECT_THAT(text, HasSubstr("  reference  problem.py: inputs, reference and baseline\n"));
  EXPECT_THAT(text, HasSubstr("  toml       source, files, options, [[launch]]"));
  EXPECT_THAT(text, HasSubstr("  pawl propose 7 --patch FILE --name NAME"));
  EXPECT_THAT(text, Not(HasSubstr("iteration 0")));
}

}  // namespace
}  // namespace pawl
