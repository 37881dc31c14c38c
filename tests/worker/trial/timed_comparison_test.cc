#include "worker/trial/timed_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A runner without a GPU: each process has a ratio of its own, and times the parent as it is told.
class FakeRunner {
 public:
  struct Process {
    double log_ratio = 0;  // of parent to candidate
    double noise = 0.001;
    double parent_us = 10;
    int discarded = 0;
    std::optional<v1::Check> fails = std::nullopt;
    int fails_after = 0;  // batches
  };

  FakeRunner(std::initializer_list<Process> processes) : processes_(processes) {}

  PairTimer Timer(bool cold = false) {
    PairTimer timer;
    timer.time = [this, cold](int pairs) -> absl::StatusOr<Timing> {
      asked.push_back(pairs);
      const Process& process = processes_.front();
      Timing timing;
      if (process.fails && batch_++ >= process.fails_after) {
        timing.failure.emplace();
        timing.failure->set_check(*process.fails);
        return timing;
      }
      const bool thrown_away = process.discarded >= 10;
      for (int i = 0; i < pairs && !thrown_away; ++i) {
        const double ratio = process.log_ratio + (i % 2 == 0 ? process.noise : -process.noise);
        v1::PairSample* pair = timing.times.add_pairs();
        pair->set_parent_us(process.parent_us);
        pair->set_candidate_us(process.parent_us * std::exp(-ratio));
        pair->set_log_ratio(ratio);
      }
      timing.times.set_discarded(process.discarded);
      // The mode that does not decide takes twice as long.
      timing.times.set_parent_warm_us(process.parent_us * (cold ? 2 : 1));
      timing.times.set_parent_cold_us(process.parent_us * (cold ? 1 : 2));
      timing.times.set_candidate_warm_us(process.parent_us * std::exp(-process.log_ratio) * (cold ? 2 : 1));
      timing.times.set_candidate_cold_us(process.parent_us * std::exp(-process.log_ratio) * (cold ? 1 : 2));
      return timing;
    };
    timer.start_fresh_process = [this] {
      processes_.pop_front();
      batch_ = 0;
      ++restarts;
    };
    timer.time_parent_alone = [this](int) -> absl::StatusOr<Timing> {
      ++alone;
      Timing timing;
      timing.times.set_parent_warm_us(parent_alone_us);
      return timing;
    };
    timer.report = [this](bool confirms) { reports.push_back(confirms); };
    return timer;
  }

  std::vector<int> asked;
  std::vector<bool> reports;
  int restarts = 0;
  int alone = 0;
  double parent_alone_us = 10;

 private:
  std::deque<Process> processes_;
  int batch_ = 0;
};

TimedComparison Compare(FakeRunner& runner, double stored_us = 0) {
  absl::StatusOr<TimedComparison> timed = CompareTimed(runner.Timer(), v1::TIMING_MODE_WARM, stored_us, KeepRule());
  EXPECT_TRUE(timed.ok()) << timed.status();
  return *std::move(timed);
}

TEST(CompareTimed, ConfirmsAFasterCandidateInAFreshProcessAndKeepsThePairsOfBoth) {
  FakeRunner runner{{.log_ratio = 0.10}, {.log_ratio = 0.05}};
  const TimedComparison timed = Compare(runner);
  EXPECT_EQ(timed.comparison.result(), v1::FASTER);
  EXPECT_EQ(timed.first.pairs.size(), 7u);
  ASSERT_TRUE(timed.confirming.has_value());
  EXPECT_EQ(timed.confirming->pairs.size(), 7u);
  EXPECT_EQ(runner.restarts, 1);
  EXPECT_THAT(runner.reports, ElementsAre(false, true));

  v1::TrialResult result;
  SetTimes(timed, &result);
  EXPECT_EQ(result.pairs_size(), 7);
  EXPECT_EQ(result.confirming_pairs_size(), 7);
  EXPECT_NEAR(result.warm_us(), 10 * std::exp(-0.05), 0.02) << "the times are the fresh process's";
  EXPECT_NEAR(result.cold_us(), 20 * std::exp(-0.05), 0.02);
  EXPECT_EQ(result.parent_warm_us(), 10);
  EXPECT_EQ(result.parent_cold_us(), 20);
}

TEST(CompareTimed, DoesNotBelieveWhatAFreshProcessDoesNotSee) {
  FakeRunner runner{{.log_ratio = 0.10}, {.log_ratio = 0}};
  EXPECT_EQ(Compare(runner).comparison.result(), v1::UNCLEAR);
}

TEST(CompareTimed, NeedsNoSecondProcessForASlowerOne) {
  FakeRunner runner{{.log_ratio = -0.10}};
  const TimedComparison timed = Compare(runner);
  EXPECT_EQ(timed.comparison.result(), v1::SLOWER);
  EXPECT_FALSE(timed.confirming.has_value());
  EXPECT_EQ(runner.restarts, 0);
}

TEST(CompareTimed, ExtendsAnUnclearComparisonOnceInTheSameProcess) {
  FakeRunner runner{{.log_ratio = 0.01, .noise = 0.02}};
  const TimedComparison timed = Compare(runner);
  EXPECT_THAT(runner.asked, ElementsAre(7, 8));
  EXPECT_EQ(timed.first.pairs.size(), 15u);
  EXPECT_EQ(timed.comparison.pairs(), 15);
  EXPECT_EQ(runner.restarts, 0);
}

TEST(CompareTimed, GivesAFailureOfTheCandidateBackAsAValue) {
  FakeRunner runner{{.log_ratio = 0.1, .fails = v1::CHECK_TIMED_OUTPUT}};
  const TimedComparison timed = Compare(runner);
  ASSERT_TRUE(timed.failure.has_value());
  EXPECT_EQ(timed.failure->check(), v1::CHECK_TIMED_OUTPUT);
}

TEST(CompareTimed, SeesAFailureInTheConfirmingProcess) {
  FakeRunner runner{{.log_ratio = 0.1}, {.fails = v1::CHECK_FAULT}};
  const TimedComparison timed = Compare(runner);
  ASSERT_TRUE(timed.failure.has_value());
  EXPECT_EQ(timed.failure->check(), v1::CHECK_FAULT);
  EXPECT_NE(timed.comparison.result(), v1::FASTER);
}

TEST(CompareTimed, PassesAFaultOfTheMachineOn) {
  PairTimer timer;
  timer.time = [](int) -> absl::StatusOr<Timing> { return absl::InternalError("lost"); };
  EXPECT_EQ(CompareTimed(timer, v1::TIMING_MODE_WARM, 0, KeepRule()).status(), absl::InternalError("lost"));
}

TEST(CompareTimed, LetsAFreshProcessDecideWhenTheParentIsOffItsStoredTime) {
  FakeRunner runner{{.log_ratio = 0.2, .parent_us = 12}, {.log_ratio = 0, .parent_us = 10}};
  const TimedComparison timed = Compare(runner, /*stored_us=*/10);
  EXPECT_EQ(timed.comparison.result(), v1::SAME) << "only the fresh process counts";
  EXPECT_EQ(timed.first.pairs.size(), 7u);
  EXPECT_EQ(timed.first.pairs[0].parent_us(), 10);
  EXPECT_EQ(runner.restarts, 1);
  EXPECT_EQ(runner.alone, 0);
}

TEST(CompareTimed, BelievesAParentThatIsAsSlowAlone) {
  FakeRunner runner{{.parent_us = 12}, {.parent_us = 12}};
  runner.parent_alone_us = 12.1;
  const TimedComparison timed = Compare(runner, /*stored_us=*/10);
  EXPECT_FALSE(timed.failure.has_value());
  EXPECT_EQ(timed.comparison.result(), v1::SAME);
  EXPECT_EQ(runner.alone, 1);
  EXPECT_THAT(timed.notes, HasSubstr("12.100 us alone"));
}

TEST(CompareTimed, FailsACandidateWhoseParentIsAloneAsItWasStored) {
  FakeRunner runner{{.log_ratio = 0.2, .parent_us = 12}, {.log_ratio = 0.2, .parent_us = 12}};
  runner.parent_alone_us = 11.1;  // within 10 % of what it took beside the candidate, but nearer to what is stored
  const TimedComparison timed = Compare(runner, /*stored_us=*/10.5);
  ASSERT_TRUE(timed.failure.has_value());
  EXPECT_EQ(timed.failure->check(), v1::CHECK_UNSTEADY);
}

TEST(CompareTimed, FailsACandidateThatSlowsItsParent) {
  FakeRunner runner{{.log_ratio = 0.2, .parent_us = 12}, {.log_ratio = 0.2, .parent_us = 12}};
  const TimedComparison timed = Compare(runner, /*stored_us=*/10);
  ASSERT_TRUE(timed.failure.has_value());
  EXPECT_EQ(timed.failure->check(), v1::CHECK_UNSTEADY);
  EXPECT_THAT(timed.failure->message(), HasSubstr("12.000 us beside this candidate and 10.000 us alone"));
}

TEST(CompareTimed, MeasuresAgainInAFreshProcessWhenTheGpuWasUnsteady) {
  FakeRunner runner{{.discarded = 10}, {.log_ratio = -0.1}};
  EXPECT_EQ(Compare(runner).comparison.result(), v1::SLOWER);
  FakeRunner always{{.discarded = 10}, {.discarded = 10}};
  const TimedComparison timed = Compare(always, /*stored_us=*/10);
  EXPECT_EQ(timed.comparison.result(), v1::UNCLEAR);
  EXPECT_EQ(timed.first.discarded, 10);
}

TEST(CompareTimed, TakesTheDecidingTimesFromThePairsWhenColdDecides) {
  FakeRunner runner{{.log_ratio = -0.10}};
  absl::StatusOr<TimedComparison> timed =
      CompareTimed(runner.Timer(/*cold=*/true), v1::TIMING_MODE_COLD, /*stored_parent_us=*/10, KeepRule());
  ASSERT_TRUE(timed.ok());
  EXPECT_EQ(timed->first.parent_cold_us, 10);
  EXPECT_EQ(timed->first.parent_warm_us, 20);
  EXPECT_EQ(runner.restarts, 0) << "the stored time is compared with the cold one";
}

TEST(KeepRuleOf, TakesTheCampaignsThresholdWhereThereIsOne) {
  v1::KeepSettings settings;
  EXPECT_EQ(KeepRuleOf(settings).min_gain, KeepRule().min_gain);
  settings.set_min_gain(0.05);
  EXPECT_EQ(KeepRuleOf(settings).min_gain, 0.05);
}

}  // namespace
}  // namespace pawl
