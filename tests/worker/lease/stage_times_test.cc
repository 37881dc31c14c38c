#include "worker/lease/stage_times.h"

#include <gtest/gtest.h>

namespace pawl {
namespace {

v1::TrialResult Took(double build, double profile) {
  v1::TrialResult result;
  for (const auto& [stage, seconds] : {std::pair{v1::STAGE_BUILD, build}, std::pair{v1::STAGE_PROFILE, profile}}) {
    if (seconds <= 0) continue;
    result.add_stages()->set_stage(stage);
    result.mutable_stages()->rbegin()->set_seconds(seconds);
  }
  return result;
}

TEST(StageTimes, EstimateByTheMeanOfEarlierTrialsOfTheCampaign) {
  StageTimes times;
  EXPECT_EQ(times.SecondsLeft("campaigns/7", v1::STAGE_BUILD, 1), 0);
  times.Add("campaigns/7", Took(2, 10));
  times.Add("campaigns/7", Took(4, 0));  // not every trial is profiled
  EXPECT_DOUBLE_EQ(times.SecondsLeft("campaigns/7", v1::STAGE_BUILD, 1), 2 + 5);
  EXPECT_DOUBLE_EQ(times.SecondsLeft("campaigns/7", v1::STAGE_BUILD, 100), 5);
  EXPECT_DOUBLE_EQ(times.SecondsLeft("campaigns/7", v1::STAGE_PROFILE, 2), 3);
  EXPECT_EQ(times.SecondsLeft("campaigns/8", v1::STAGE_BUILD, 1), 0);
}

TEST(CampaignOf, IsTheFirstTwoParts) {
  EXPECT_EQ(CampaignOf("campaigns/7/trials/13"), "campaigns/7");
  EXPECT_EQ(CampaignOf("campaigns/7"), "campaigns/7");
  EXPECT_EQ(CampaignOf("x"), "x");
}

}  // namespace
}  // namespace pawl
