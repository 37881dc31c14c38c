#include <gtest/gtest.h>

#include <limits>

#include "orchestrator/engine/verdict/verdict.h"

namespace pawl {
namespace {

v1::Evidence With(double waves) {
  v1::Evidence evidence;
  (*evidence.add_launches()->mutable_metrics())["waves"] = waves;
  return evidence;
}

v1::Prediction Check(double speedup, const v1::Evidence& parent, const v1::Evidence& candidate,
                     v1::Direction direction = v1::DIRECTION_MORE) {
  v1::Prediction prediction;
  prediction.set_metric("waves");
  prediction.set_direction(direction);
  prediction.set_low(1.1);
  prediction.set_high(2);
  CheckPrediction(speedup, parent, candidate, &prediction);
  return prediction;
}

TEST(PredictionTest, ComesTrueWhenTimeAndMetricDo) {
  const v1::Prediction prediction = Check(1.2, With(0.1), With(0.4));
  EXPECT_EQ(prediction.outcome(), v1::Prediction::CAME_TRUE);
  EXPECT_EQ(prediction.time_outcome(), v1::Prediction::CAME_TRUE);
  EXPECT_EQ(prediction.metric_outcome(), v1::Prediction::CAME_TRUE);
  EXPECT_EQ(prediction.before(), 0.1);
  EXPECT_EQ(prediction.after(), 0.4);
}

TEST(PredictionTest, FailsWhenItGainsMoreThanItsRange) {
  EXPECT_EQ(Check(5, With(0.1), With(0.4)).time_outcome(), v1::Prediction::FAILED);
}

TEST(PredictionTest, FailsWhenItGainsLessThanPredicted) {
  const v1::Prediction prediction = Check(1.05, With(0.1), With(0.4));
  EXPECT_EQ(prediction.outcome(), v1::Prediction::FAILED);
  EXPECT_EQ(prediction.time_outcome(), v1::Prediction::FAILED);
  EXPECT_EQ(prediction.metric_outcome(), v1::Prediction::CAME_TRUE);
}

TEST(PredictionTest, FailsWhenTheMetricStaysOrMovesTheOtherWay) {
  EXPECT_EQ(Check(1.5, With(0.4), With(0.4)).metric_outcome(), v1::Prediction::FAILED);
  EXPECT_EQ(Check(1.5, With(0.4), With(0.1)).outcome(), v1::Prediction::FAILED);
  EXPECT_EQ(Check(1.5, With(0.4), With(0.1), v1::DIRECTION_LESS).outcome(), v1::Prediction::CAME_TRUE);
  EXPECT_EQ(Check(1.5, With(0), With(0.1)).metric_outcome(), v1::Prediction::CAME_TRUE) << "from nothing";
}

TEST(PredictionTest, LeavesAMetricThatWasNotMeasuredUnchecked) {
  for (const v1::Evidence& lacking : {v1::Evidence(), With(std::numeric_limits<double>::quiet_NaN())}) {
    const v1::Prediction prediction = Check(1.5, With(0.4), lacking);
    EXPECT_EQ(prediction.metric_outcome(), v1::Prediction::UNCHECKED);
    EXPECT_EQ(prediction.outcome(), v1::Prediction::CAME_TRUE) << "the time is always checked";
    EXPECT_FALSE(prediction.has_after());
  }
}

}  // namespace
}  // namespace pawl
