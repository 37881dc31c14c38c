#include "report/sentences.h"

#include <gtest/gtest.h>

#include "report/words.h"

namespace pawl {
namespace {

using Outcome = v1::Prediction::Outcome;

// Of 1.10x to 4.00x and of waves, which should rise.
v1::Prediction Judged(Outcome time, Outcome metric, double after) {
  v1::Prediction prediction;
  prediction.set_metric("waves");
  prediction.set_direction(v1::DIRECTION_MORE);
  prediction.set_low(1.1);
  prediction.set_high(4);
  prediction.set_time_outcome(time);
  prediction.set_metric_outcome(metric);
  const bool failed = time == v1::Prediction::FAILED || metric == v1::Prediction::FAILED;
  prediction.set_outcome(failed ? v1::Prediction::FAILED : v1::Prediction::CAME_TRUE);
  prediction.set_before(0.5);
  prediction.set_after(after);
  return prediction;
}

constexpr Outcome kTrue = v1::Prediction::CAME_TRUE, kFailed = v1::Prediction::FAILED;

TEST(PredictionOutcomeTextTest, NamesTheMetricThatFailed) {
  EXPECT_EQ(PredictionOutcomeText(Judged(kTrue, kFailed, 0.25), 1.5),
            "failed: 1.500x as predicted, waves did not rise (0.5 → 0.25)");
  v1::Prediction falls = Judged(kTrue, kFailed, 0.75);
  falls.set_direction(v1::DIRECTION_LESS);
  EXPECT_EQ(PredictionOutcomeText(falls, 1.5), "failed: 1.500x as predicted, waves did not fall (0.5 → 0.75)");
}

TEST(PredictionOutcomeTextTest, NamesTheSpeedupThatFailedAndOnWhichSide) {
  EXPECT_EQ(PredictionOutcomeText(Judged(kFailed, kTrue, 2), 1.05),
            "failed: 1.050x is below the predicted 1.10x, waves 0.5 → 2 as predicted");
  EXPECT_EQ(PredictionOutcomeText(Judged(kFailed, kTrue, 2), 5),
            "failed: 5.000x is above the predicted 4.00x, waves 0.5 → 2 as predicted");
}

TEST(PredictionOutcomeTextTest, NamesBothWhereBothFailed) {
  EXPECT_EQ(PredictionOutcomeText(Judged(kFailed, kFailed, 0.5), 0.9),
            "failed: 0.900x is below the predicted 1.10x, waves did not rise (0.5 → 0.5)");
}

TEST(PredictionOutcomeTextTest, SaysWhatWasMeasuredWhereItCameTrue) {
  EXPECT_EQ(PredictionOutcomeText(Judged(kTrue, kTrue, 2), 1.5), "came true: 1.500x, waves 0.5 → 2");
}

TEST(PredictionOutcomeTextTest, SaysThatAMetricWasNotChecked) {
  v1::Prediction prediction = Judged(kTrue, v1::Prediction::UNCHECKED, 0);
  prediction.clear_after();
  EXPECT_EQ(PredictionOutcomeText(prediction, 1.5), "came true: 1.500x, waves unchecked");
}

v1::Campaign MeasuredAtThreeSizes() {
  v1::Campaign campaign;
  campaign.set_best(4);
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  campaign.mutable_total_gain()->set_iteration(4);
  struct Row {
    const char* size;
    double start_us, best_us, baseline_us;
  };
  for (const Row& row : {Row{"tiny", 2, 1, 0}, Row{"main", 20, 5, 10}, Row{"large", 100, 340, 85}}) {
    v1::SizeTime& time = *campaign.mutable_total_gain()->add_sizes();
    time.set_size(row.size);
    time.set_start_us(row.start_us);
    time.set_best_us(row.best_us);
    time.set_baseline_us(row.baseline_us);
  }
  return campaign;
}

TEST(LossesTextTest, SaysPlainlyWhereTheWinnerIsSlowerAndThanWhat) {
  v1::Campaign campaign = MeasuredAtThreeSizes();
  EXPECT_EQ(LossesText(MeasuredSizes(campaign)), "large: 0.294x the start's speed, 0.250x the baseline's");
  campaign.mutable_total_gain()->mutable_sizes(1)->set_baseline_us(4);
  EXPECT_EQ(LossesText(MeasuredSizes(campaign)),
            "main: 0.800x the baseline's speed; large: 0.294x the start's speed, 0.250x the baseline's");
}

TEST(LossesTextTest, IsSilentWhereNothingIsLost) {
  v1::Campaign campaign = MeasuredAtThreeSizes();
  campaign.mutable_total_gain()->mutable_sizes()->RemoveLast();
  campaign.mutable_total_gain()->mutable_sizes(0)->set_start_us(0.995);  // a few pairs do not show half a percent
  EXPECT_EQ(LossesText(MeasuredSizes(campaign)), "");
}

TEST(LossesTextTest, GoesByTheVariantThatIsTheBestNow) {
  v1::Campaign campaign = MeasuredAtThreeSizes();
  campaign.set_best(5);
  EXPECT_TRUE(MeasuredSizes(campaign).empty());
}

TEST(LossesTextTest, TakesTheRatioThatWasMeasuredInterleaved) {
  v1::Campaign campaign = MeasuredAtThreeSizes();
  campaign.mutable_total_gain()->mutable_beside_baseline()->mutable_interval()->set_pairs(24);
  campaign.mutable_total_gain()->mutable_beside_baseline()->mutable_interval()->set_mean_log_ratio(0);
  EXPECT_EQ(MeasuredSizes(campaign)[1].baseline_us(), 5);
}

TEST(RuleTextTest, NamesEachVariantAndWhereItIsPicked) {
  v1::Portfolio portfolio;
  v1::Portfolio::Member& first = *portfolio.add_members();
  first.set_iteration(14);
  v1::Portfolio::Bound& small = *first.add_bounds();
  small.add_sizes("S");
  small.set_limit(512);
  v1::Portfolio::Bound& many = *first.add_bounds();
  many.add_sizes("B");
  many.add_sizes("H");
  many.set_limit(8);
  many.set_above(true);
  portfolio.add_members()->set_iteration(10);
  EXPECT_EQ(RuleText(portfolio), "iteration 14 where S <= 512 and B*H > 8, otherwise iteration 10");
}

TEST(WordsTest, StandWhereValuesAreWords) {
  v1::Iteration iteration;
  (*iteration.mutable_variant())["ACC"] = 1;
  (*iteration.mutable_variant())["TILE"] = 64;
  v1::Change& change = *iteration.mutable_change();
  change.set_variable("ACC");
  change.set_from(0);
  change.set_to(1);
  EXPECT_EQ(ChangeText(change), "ACC 0→1") << "stored before there were words";
  EXPECT_EQ(ValuesText(iteration), "ACC=1 TILE=64");
  change.set_from_word("float");
  change.set_to_word("half");
  (*iteration.mutable_words())["ACC"] = "half";
  EXPECT_EQ(ChangeText(change), "ACC float→half");
  EXPECT_EQ(ValuesText(iteration), "ACC=half TILE=64");
}

}  // namespace
}  // namespace pawl
