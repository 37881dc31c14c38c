#include "cli/text/campaign_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/names/resource_name.h"
#include "cli/follow/verification.h"
#include "cli/text/failure.h"
#include "cli/text/iteration_text.h"
#include "cli/text/json_line.h"
#include "cli/text/words.h"
#include "tests/cli/some_iterations.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Campaign Ended() {
  v1::Campaign campaign;
  campaign.set_name("campaigns/7");
  campaign.set_state(v1::FINISHED);
  campaign.set_stop_reason(v1::STOP_REASON_ITERATIONS);
  campaign.set_bundle("attention");
  campaign.mutable_spec()->mutable_goal()->set_size("main");
  campaign.mutable_spec()->mutable_goal()->set_speedup(1.5);
  campaign.set_device("NVIDIA H200");
  campaign.mutable_counts()->set_tried(4);
  campaign.mutable_counts()->set_kept(2);
  campaign.mutable_counts()->set_reverted(1);
  campaign.mutable_counts()->set_rejected(1);
  campaign.set_best(4);
  campaign.set_start_us(20.12);
  campaign.set_best_us(11.18);
  campaign.set_baseline_us(5.82);
  campaign.set_baseline("torch scaled_dot_product_attention");
  campaign.set_speedup_over_start(1.8);
  campaign.set_speedup_over_baseline(0.52);
  return campaign;
}

TEST(SummaryTest, SaysWhatWasGainedAndHow) {
  const std::vector<v1::Iteration> all = SomeIterations();
  EXPECT_EQ(SummaryText(Ended(), {all[0], all[1], all[4]}),
            "campaigns/7 finished: the iterations are used up\n"
            "kernel     attention at main\n"
            "device     NVIDIA H200\n"
            "tried      4: 2 kept, 1 reverted, 1 rejected\n"
            "baseline   5.820 us  torch scaled_dot_product_attention\n"
            "start      20.12 us\n"
            "best       11.18 us  iteration 4: TILE_M=128 WARPS=4\n"
            "speedup    1.800x over the start, 0.520x over the baseline (goal 1.50x)\n"
            "kept changes:\n"
            "  0  start               -  20.12 us\n"
            "  1  TILE_M 64→32   1.500x  13.41 us\n"
            "  4  TILE_M 64→128  1.200x  11.18 us\n");
}

TEST(SummaryTest, ListsEverySizeAndSaysWhereTheWinnerLoses) {
  v1::Campaign campaign = Ended();
  v1::TotalGain& total = *campaign.mutable_total_gain();
  total.set_iteration(4);
  total.set_speedup_over_start(1.8);
  struct Row {
    const char* size;
    double start_us, best_us, baseline_us;
  };
  for (const Row& row : {Row{"tiny", 4, 2, 0}, Row{"main", 20.12, 11.18, 5.82}, Row{"large", 100, 340, 85}}) {
    v1::SizeTime& time = *total.add_sizes();
    time.set_size(row.size);
    time.set_start_us(row.start_us);
    time.set_best_us(row.best_us);
    time.set_baseline_us(row.baseline_us);
  }
  EXPECT_THAT(SummaryText(campaign, {}),
              HasSubstr("all sizes:\n"
                        "  size   weight     start      best  baseline  over start  over baseline\n"
                        "  tiny        -  4.000 us  2.000 us         -      2.000x              -\n"
                        "  main        1  20.12 us  11.18 us  5.820 us      1.800x         0.521x\n"
                        "  large       -  100.0 us  340.0 us  85.00 us      0.294x         0.250x\n"
                        "SLOWER at main: 0.521x the baseline's speed; large: 0.294x the start's speed, 0.250x the "
                        "baseline's\n"));
  auto& weights = *campaign.mutable_spec()->mutable_goal()->mutable_sizes();
  weights["main"] = 0.6;
  weights["large"] = 0.4;
  const std::string text = SummaryText(campaign, {});
  EXPECT_THAT(text, HasSubstr("kernel     attention over main (0.6), large (0.4)\n"));
  EXPECT_THAT(text, HasSubstr("start      20.12 us at main\n"));
  EXPECT_THAT(text, HasSubstr("  large     0.4  100.0 us"));
}

TEST(SummaryTest, SaysHowBusyTheGpuWas) {
  v1::Campaign campaign = Ended();
  campaign.set_gpu_seconds(41);
  campaign.set_dollars(0);
  campaign.set_gpu_busy(0.436);
  EXPECT_THAT(SummaryText(campaign, {}), HasSubstr("spent      41 s of GPU time, GPU busy 44 %\n"));
}

TEST(SummaryTest, SaysWhatWasMeasuredInAllAndHowFarItCame) {
  v1::Campaign campaign = Ended();
  campaign.set_tier(v1::SUCCESS_TIER_TARGET);
  campaign.mutable_total_gain()->set_iteration(4);
  campaign.mutable_total_gain()->set_speedup_over_start(1.8);
  campaign.mutable_total_gain()->set_multiplied(1.83);
  campaign.add_roof("dram-bound");
  EXPECT_THAT(SummaryText(campaign, {}),
              HasSubstr("measured   iteration 4 against the start: 1.800x; estimated from the steps: 1.830x\n"
                        "tier       target: the goal is reached\n"
                        "roof       dram-bound\n"));
}

TEST(SummaryTest, GivesTheSpeedOverTheBaselineWithItsBoundsWhereItWasMeasuredBesideIt) {
  v1::Campaign campaign = Ended();
  campaign.mutable_total_gain()->set_iteration(4);
  v1::Comparison& interval = *campaign.mutable_total_gain()->mutable_beside_baseline()->mutable_interval();
  interval.set_lower(-0.6931472);
  interval.set_upper(-0.6161861);
  interval.set_pairs(24);
  EXPECT_THAT(
      SummaryText(campaign, {}),
      HasSubstr("speedup    1.800x over the start, 0.520x (0.500x to 0.540x) over the baseline (goal 1.50x)\n"));
  campaign.mutable_total_gain()->set_iteration(1);
  EXPECT_THAT(SummaryText(campaign, {}), HasSubstr(", 0.520x over the baseline (goal")) << "of another variant";
}

TEST(SummaryTest, SaysThatNothingWasFaster) {
  v1::Campaign campaign = Ended();
  campaign.set_best(0);
  campaign.clear_baseline_us();
  campaign.set_baseline("the baseline failed: no PyTorch");
  EXPECT_THAT(SummaryText(campaign, {}), HasSubstr("baseline   the start variant; the baseline failed: no PyTorch\n"));
  campaign.clear_baseline();
  const std::string text = SummaryText(campaign, {SomeIterations()[0]});
  EXPECT_THAT(text, HasSubstr("best       the start variant: no change was faster\n"));
  EXPECT_THAT(text, HasSubstr("baseline   the start variant\n"));
  EXPECT_THAT(text, Not(HasSubstr("kept changes")));
}

// No variant is faster than the start over all sizes, but each is at some.
TEST(SummaryTest, CountsAPortfolioAsAnImprovement) {
  v1::Campaign campaign = Ended();
  campaign.set_best(0);
  EXPECT_EQ(ExitCodeOf(campaign), kNoImprovement);
  v1::Portfolio& portfolio = *campaign.mutable_portfolio();
  portfolio.add_members()->set_iteration(12);
  portfolio.set_speedup_over_start(1);
  EXPECT_EQ(ExitCodeOf(campaign), kNoImprovement);
  portfolio.set_speedup_over_start(1.22);
  EXPECT_EQ(ExitCodeOf(campaign), kDone);
  const std::string text = SummaryText(campaign, {SomeIterations()[0]});
  EXPECT_THAT(text, HasSubstr("best       the start variant: no change was faster over all sizes\n"));
  EXPECT_THAT(text, HasSubstr("portfolio: 1.220x over the start; iteration 12 at every size\n"));
}

TEST(SummaryTest, SaysWhatACampaignWaitsFor) {
  v1::Campaign campaign;
  campaign.set_name("campaigns/8");
  campaign.set_state(v1::WAITING);
  campaign.set_message("no worker has a recording of it");
  campaign.set_bundle("softmax");
  campaign.mutable_spec()->mutable_goal()->set_size("large");
  EXPECT_EQ(SummaryText(campaign, {}),
            "campaigns/8 waiting: no worker has a recording of it\nkernel     softmax at large\n");
}

TEST(ExitCodeTest, FollowsTheCampaign) {
  v1::Campaign campaign = Ended();
  EXPECT_EQ(ExitCodeOf(campaign), kDone);
  campaign.set_best(0);
  EXPECT_EQ(ExitCodeOf(campaign), kNoImprovement);
  campaign.set_stop_reason(v1::STOP_REASON_GOAL);
  EXPECT_EQ(ExitCodeOf(campaign), kDone);
  campaign.set_state(v1::FAILED);
  EXPECT_EQ(ExitCodeOf(campaign), kFailed);
  campaign.set_state(v1::CANCELLED);
  EXPECT_EQ(ExitCodeOf(campaign), kFailed);
}

TEST(FailureTest, SaysTheProblemsAndTheFix) {
  v1::ErrorDetail detail;
  detail.add_problems("kernel.toml:3: unknown key sumary");
  detail.add_problems("kernel.toml:9: start is 65");
  detail.set_fix("pawl check says more");
  const absl::Status status = WithDetail(absl::InvalidArgumentError("the bundle has mistakes"), detail);
  EXPECT_EQ(FailureText(status),
            "the bundle has mistakes\n"
            "  kernel.toml:3: unknown key sumary\n"
            "  kernel.toml:9: start is 65\n"
            "  fix: pawl check says more");
  EXPECT_EQ(FailureText(absl::InternalError("broken")), "broken");
  EXPECT_EQ(FailureText(absl::InternalError("")), "failed: INTERNAL");
}

TEST(ResourceNameTest, TakesNumbersAndWholeNames) {
  EXPECT_EQ(*ReadCampaignName("7"), "campaigns/7");
  EXPECT_EQ(*ReadCampaignName("campaigns/7"), "campaigns/7");
  EXPECT_EQ(*ReadIterationName("campaigns/7", "0"), "campaigns/7/iterations/0");
  EXPECT_EQ(*ReadIterationName("campaigns/7", "campaigns/7/iterations/12"), "campaigns/7/iterations/12");
  for (const char* wrong : {"", "0", "-1", "07", "7x", "campaigns/", "workers/7", "campaigns/7/iterations/1", " 7"}) {
    EXPECT_FALSE(ReadCampaignName(wrong).ok()) << wrong;
  }
  for (const char* wrong : {"", "-1", "campaigns/8/iterations/12", "01", "99999999999999999999"}) {
    EXPECT_FALSE(ReadIterationName("campaigns/7", wrong).ok()) << wrong;
  }
  EXPECT_EQ(ShortName("campaigns/7/iterations/12"), "12");
}

TEST(WordsTest, WritesNumbersAsPeopleReadThem) {
  EXPECT_EQ(TimeText(3.3611), "3.361 us");
  EXPECT_EQ(TimeText(526.13), "526.1 us");
  EXPECT_EQ(TimeText(12345.6), "12346 us");
  EXPECT_EQ(TimeText(0), "-");
  EXPECT_EQ(SpeedupText(1.42), "1.420x");
  EXPECT_EQ(SecondsText(59.7), "1 min 00 s");
  EXPECT_EQ(NumberText(0.015151515), "0.01515");
  EXPECT_EQ(NumberText(49152), "49152");
  EXPECT_EQ(NumberText(12345.67), "12346");
  EXPECT_EQ(NumberText(6.2914e9), "6.291e+09");
  EXPECT_EQ(StageWord(v1::STAGE_STATIC_CHECK), "static check");
  EXPECT_EQ(WorkerStateWord(v1::WORKER_STATE_IDLE), "idle");
}

TEST(JsonLineTest, HasTheFieldsOfTheDesignAndNoOthers) {
  v1::Iteration start = SomeIterations()[0];
  start.mutable_variant()->erase("WARPS");  // a map has no order
  EXPECT_EQ(
      JsonLine(start),
      R"({"name":"campaigns/7/iterations/0","number":0,"variant":{"TILE_M":64},"verdict":"KEPT",)"
      R"("reason":"the start","timeUs":20.12,"speedupOverStart":1,"speedupOverBaseline":0.3,"device":"NVIDIA H200"})");
  v1::Iteration next = SomeIterations()[2];
  next.set_comparison(v1::SLOWER);
  next.mutable_change()->set_to(0);
  const std::string json = JsonLine(next);
  for (const char* field : {R"("parent":1)", R"("change":{"variable":"TILE_M","from":64,"to":0})",
                            R"("comparison":"SLOWER")", R"("verdict":"REVERTED")"}) {
    EXPECT_THAT(json, HasSubstr(field));
  }
}

TEST(IterationTextTest, TellsTheWholeStory) {
  v1::Iteration iteration = SomeIterations()[4];
  iteration.set_author("tree");
  iteration.set_why("the next untried neighbour");
  iteration.mutable_finding()->set_rule("grid-too-small");
  iteration.mutable_finding()->set_text("2 blocks for 132 SMs");
  iteration.set_comparison(v1::FASTER);
  iteration.mutable_interval()->set_lower(0.1397619);
  iteration.mutable_interval()->set_upper(0.2231436);
  iteration.mutable_interval()->set_pairs(7);
  v1::StageTime* build = iteration.add_stages();
  build->set_stage(v1::STAGE_BUILD);
  build->set_seconds(0.174);
  iteration.add_stages()->set_stage(v1::STAGE_VALIDATE);
  v1::StageTime* again = iteration.add_stages();
  again->set_stage(v1::STAGE_BUILD);
  again->set_seconds(0.2);
  iteration.set_build("nvrtc --gpu-architecture=sm_90 -DTILE_M=128");
  v1::LaunchEvidence* launch = iteration.mutable_evidence()->add_launches();
  launch->set_entry("attention_forward");
  (*launch->mutable_metrics())["waves"] = 0.0152;
  (*launch->mutable_metrics())["occupancy"] = 6.45;
  const std::string text = IterationText(iteration);
  EXPECT_THAT(text, HasSubstr("campaigns/7/iterations/4 kept: faster: 1.15 to 1.25\n"));
  EXPECT_THAT(text, HasSubstr("change       TILE_M 64→128 from iteration 1\n"));
  EXPECT_THAT(text, HasSubstr("chosen       by tree: the next untried neighbour\n"));
  EXPECT_THAT(text, HasSubstr("finding      grid-too-small: 2 blocks for 132 SMs\n"));
  EXPECT_THAT(text, HasSubstr("comparison   faster than its parent: 1.200x, between 1.150x and 1.250x in 7 pairs\n"));
  EXPECT_THAT(text, HasSubstr("stages       build 0.37 s, validate 0.00 s\n"));
  EXPECT_THAT(text, HasSubstr("build        nvrtc --gpu-architecture=sm_90 -DTILE_M=128\n"));
  EXPECT_THAT(text, HasSubstr("  occupancy    6.45  %\n"));
  EXPECT_THAT(text, HasSubstr("  waves      0.0152"));
}

TEST(VerificationTextTest, SaysWhatDiffers) {
  v1::Verification verification;
  verification.set_iteration(4);
  verification.set_text("12.9 us is 15 % off 11.2 us");
  verification.add_differences("driver 580.1 was 570.2");
  EXPECT_EQ(VerificationText(verification),
            "iteration 4 does not agree: 12.9 us is 15 % off 11.2 us\n"
            "code     different machine code\n"
            "differs  driver 580.1 was 570.2\n");
}

}  // namespace
}  // namespace pawl
