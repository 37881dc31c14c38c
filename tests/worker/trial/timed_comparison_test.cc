#include "worker/trial/timed_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>

namespace pawl {
namespace {

using ::testing::ElementsAre;

// A runner without a GPU: each process has a ratio of its own, and times the parent as it is told.
class FakeRunner {
 public:
  struct Process {
    double log_ratio = 0;  // of parent to candidate
    double noise = 0.001;
    double parent_us = 10;
    int discarded = 0;
    std::optional<v1::Check> fails = std::nullopt;
    int fails_after = 0;   // batches
    int ends_with = 1000;  // pairs, the first time it is asked
  };

  FakeRunner(std::initializer_list<Process> processes) : processes_(processes) {}

  PairTimer Timer(bool cold = false) {
    PairTimer timer;
    timer.time = [this, cold](const std::string&, int pairs, int number) -> absl::StatusOr<Timing> {
      asked.push_back(pairs);
      numbers.push_back(number);
      const Process& process = processes_.front();
      Timing timing;
      if (process.fails && batch_++ >= process.fails_after) {
        timing.failure.emplace();
        timing.failure->set_check(*process.fails);
        return timing;
      }
      const bool thrown_away = process.discarded >= 10;
      const int most = numbers.size() == 1 ? process.ends_with : pairs;
      for (int i = 0; i < std::min(pairs, most) && !thrown_away; ++i) {
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
    timer.report = [this](const std::string&, int process) { reports.push_back(process); };
    return timer;
  }

  std::vector<int> asked;
  std::vector<int> numbers;  // of the process, each time it was asked
  std::vector<int> reports;
  int restarts = 0;

 private:
  std::deque<Process> processes_;
  int batch_ = 0;
};

v1::ProcessNoise LittleNoise() {
  v1::ProcessNoise noise;
  noise.set_variance(1e-6);
  noise.set_degrees(20);
  return noise;
}

TimedComparison Compare(FakeRunner& runner, const KeepRule& rule = {}) {
  absl::StatusOr<TimedComparison> timed = CompareTimed(runner.Timer(), v1::TIMING_MODE_WARM, LittleNoise(), rule);
  EXPECT_TRUE(timed.ok()) << timed.status();
  return *std::move(timed);
}

TEST(CompareTimed, ConfirmsAFasterCandidateInAFreshProcessAndKeepsThePairsOfBoth) {
  FakeRunner runner{{.log_ratio = 0.101}, {.log_ratio = 0.10}};
  const TimedComparison timed = Compare(runner);
  EXPECT_EQ(timed.comparison.result(), v1::FASTER);
  ASSERT_EQ(timed.processes.size(), 2u);
  EXPECT_EQ(runner.restarts, 1);
  EXPECT_THAT(runner.asked, ElementsAre(12, 36));
  EXPECT_THAT(runner.numbers, ElementsAre(0, 1));
  EXPECT_THAT(runner.reports, ElementsAre(0, 1));

  v1::TrialResult result;
  SetTimes(timed, "", &result);
  ASSERT_EQ(result.pairs_size(), 12);
  ASSERT_EQ(result.confirming_pairs_size(), 36);
  EXPECT_EQ(result.pairs(0).process(), 0);
  EXPECT_EQ(result.confirming_pairs(0).process(), 1);
  EXPECT_NEAR(result.warm_us(), 10 * std::exp(-0.10), 0.01) << "the times are the fresh process's";
  EXPECT_NEAR(result.cold_us(), 20 * std::exp(-0.10), 0.01);
  EXPECT_EQ(result.parent_warm_us(), 10);
  EXPECT_EQ(result.parent_cold_us(), 20);
}

TEST(CompareTimed, AsksFurtherProcessesWhereTheFirstTwoDisagree) {
  FakeRunner runner{{.log_ratio = 0.44, .discarded = 1},
                    {.log_ratio = 0.40, .discarded = 2},
                    {.log_ratio = 0.43},
                    {.log_ratio = 0.41, .discarded = 3}};
  const TimedComparison timed = Compare(runner);
  EXPECT_EQ(timed.comparison.result(), v1::FASTER) << timed.comparison.reason();
  EXPECT_EQ(timed.processes.size(), 4u);
  v1::TrialResult result;
  SetTimes(timed, "", &result);
  EXPECT_EQ(result.confirming_pairs_size(), 3 * 36);
  EXPECT_EQ(result.confirming_pairs(107).process(), 3);
  EXPECT_EQ(result.discarded(), 1);
  EXPECT_EQ(result.confirming_discarded(), 5);
  EXPECT_NEAR(result.warm_us(), 10 * (std::exp(-0.40) + std::exp(-0.43) + std::exp(-0.41)) / 3, 0.02)
      << "the mean over those that were not picked";
}

TEST(CompareTimed, DoesNotBelieveWhatAFreshProcessDoesNotSee) {
  FakeRunner runner{{.log_ratio = 0.015}, {.log_ratio = 0}};
  EXPECT_NE(Compare(runner).comparison.result(), v1::FASTER);
}

TEST(CompareTimed, NeedsNoSecondProcessForASlowerOne) {
  FakeRunner runner{{.log_ratio = -0.10}};
  const TimedComparison timed = Compare(runner);
  EXPECT_EQ(timed.comparison.result(), v1::SLOWER);
  EXPECT_EQ(timed.processes.size(), 1u);
  EXPECT_EQ(runner.restarts, 0);
}

TEST(CompareTimed, ExtendsAnUnclearComparisonOnceInTheSameProcess) {
  FakeRunner runner{{.log_ratio = 0.005, .noise = 0.02}};
  const TimedComparison timed = Compare(runner);
  EXPECT_THAT(runner.asked, ElementsAre(12, 24));
  EXPECT_THAT(runner.numbers, ElementsAre(0, 0));
  EXPECT_EQ(timed.processes[0].pairs.size(), 36u);
  EXPECT_EQ(timed.comparison.pairs(), 36);
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
  timer.time = [](const std::string&, int, int) -> absl::StatusOr<Timing> { return absl::InternalError("lost"); };
  EXPECT_EQ(CompareTimed(timer, v1::TIMING_MODE_WARM, LittleNoise(), KeepRule()).status(), absl::InternalError("lost"));
}

TEST(CompareTimed, MeasuresAgainInAFreshProcessWhenTheGpuWasUnsteady) {
  FakeRunner runner{{.discarded = 10}, {.log_ratio = -0.1}};
  EXPECT_EQ(Compare(runner).comparison.result(), v1::SLOWER);
  EXPECT_EQ(runner.restarts, 1);
  FakeRunner always{{.discarded = 10}, {.discarded = 10}};
  const TimedComparison timed = Compare(always);
  EXPECT_EQ(timed.comparison.result(), v1::UNCLEAR);
  EXPECT_EQ(timed.processes[0].discarded, 10);
}

KeepRule SureRule() {
  KeepRule rule;
  rule.sure_pairs = 2;
  return rule;
}

TEST(CompareTimed, TakesFewPairsOfWhatIsMuchSlowerWhereTheRuleAllowsIt) {
  FakeRunner runner{{.log_ratio = -0.3, .ends_with = 2}};
  const TimedComparison timed = Compare(runner, SureRule());
  EXPECT_EQ(timed.comparison.result(), v1::SLOWER);
  EXPECT_EQ(timed.processes[0].pairs.size(), 2u);
  EXPECT_THAT(runner.asked, ElementsAre(12));
  EXPECT_EQ(runner.restarts, 0);
}

TEST(CompareTimed, GoesOnInTheSameProcessWhereFewPairsDoNotShowIt) {
  FakeRunner runner{{.log_ratio = -1.2, .noise = 1, .ends_with = 2}};
  const TimedComparison timed = Compare(runner, SureRule());
  EXPECT_EQ(timed.processes[0].times.at("").pairs, timed.processes[0].pairs.size());
  EXPECT_THAT(runner.asked, ElementsAre(12, 10, 24));
  EXPECT_EQ(runner.restarts, 0);
}

TEST(CompareTimed, StartsAFreshProcessWherePairsAreLackingForAnotherReason) {
  FakeRunner not_asked_for{{.log_ratio = -0.3, .ends_with = 2}, {.log_ratio = -0.3}};
  EXPECT_EQ(Compare(not_asked_for).processes[0].pairs.size(), 12u);
  EXPECT_EQ(not_asked_for.restarts, 1);
  FakeRunner not_slower{{.log_ratio = -0.05, .ends_with = 2}, {.log_ratio = -0.05}};
  EXPECT_EQ(Compare(not_slower, SureRule()).processes[0].pairs.size(), 12u);
  EXPECT_EQ(not_slower.restarts, 1);
  FakeRunner unsteady{{.discarded = 10}, {.log_ratio = -0.3}};
  EXPECT_EQ(Compare(unsteady, SureRule()).comparison.result(), v1::SLOWER);
  EXPECT_EQ(unsteady.restarts, 1);
}

TEST(CompareTimed, TakesTheDecidingTimesFromThePairsWhenColdDecides) {
  FakeRunner runner{{.log_ratio = -0.10}};
  absl::StatusOr<TimedComparison> timed =
      CompareTimed(runner.Timer(/*cold=*/true), v1::TIMING_MODE_COLD, LittleNoise(), KeepRule());
  ASSERT_TRUE(timed.ok());
  EXPECT_EQ(timed->processes[0].times.at("").parent_cold_us, 10);
  EXPECT_EQ(timed->processes[0].times.at("").parent_warm_us, 20);
}

Timing Checked(int calls, double seconds_each) {
  Timing timing;
  for (int i = 0; i < calls; ++i) timing.times.add_checked();
  timing.check_seconds = calls * seconds_each;
  return timing;
}

TEST(ChecksOfComparisonTest, TheFirstProcessChecksFew) {
  EXPECT_EQ(ChecksOfComparison().Options("main", 12, 0).checked_calls, TimingOptions().checked_calls);
}

TEST(ChecksOfComparisonTest, AQuickReferenceChecksAsManyAsThereAreToBe) {
  ChecksOfComparison checks;
  checks.Add("main", 0, Checked(20, 1e-5));
  EXPECT_EQ(checks.Options("main", 36, 1).checked_calls, 500);
}

TEST(ChecksOfComparisonTest, ASlowReferenceChecksWhatFindsACheatInOneCallOfTwenty) {
  ChecksOfComparison checks;
  checks.Add("main", 0, Checked(4, 1e-5));
  checks.Add("large", 0, Checked(4, 0.04));
  EXPECT_EQ(checks.Options("large", 36, 1).checked_calls, 135);
  EXPECT_EQ(checks.Options("main", 36, 1).checked_calls, 500) << "each size has its own reference time";
  EXPECT_LE(std::pow(0.95, 135), 0.001);
}

TEST(ChecksOfComparisonTest, AVerySlowReferenceIsGivenNoMoreThanItCanDo) {
  ChecksOfComparison checks;
  checks.Add("large", 0, Checked(4, 0.5));
  EXPECT_EQ(checks.Options("large", 36, 1).checked_calls, 80) << "40 s of it";
  EXPECT_EQ(checks.Options("large", 36, 1).needed_calls, 80);
}

TEST(ChecksOfComparisonTest, FurtherProcessesCheckWhatIsLeftAndNoFewerThanTheFirst) {
  ChecksOfComparison checks;
  checks.Add("large", 0, Checked(4, 0.04));
  checks.Add("large", 1, Checked(64, 0.04));  // more did not fit
  EXPECT_EQ(checks.Options("large", 36, 2).checked_calls, 135 - 64);
  checks.Add("large", 2, Checked(70, 0.04));
  EXPECT_EQ(checks.Options("large", 36, 3).checked_calls, TimingOptions().checked_calls);
}

TEST(ChecksOfComparisonTest, CallsAreMadeForChecksOnlyUpToWhatFindsACheatInOneCallOfTwenty) {
  ChecksOfComparison checks;
  EXPECT_EQ(checks.Options("quick", 12, 0).needed_calls, 0)
      << "few calls are checked where nothing is about to be kept";
  checks.Add("quick", 0, Checked(20, 1e-5));
  EXPECT_EQ(checks.Options("quick", 12, 1).needed_calls, 135) << "more are welcome, but not worth further calls";
  checks.Add("quick", 1, Checked(100, 1e-5));
  EXPECT_EQ(checks.Options("quick", 24, 1).needed_calls, 35);
  checks.Add("quick", 1, Checked(40, 1e-5));
  EXPECT_EQ(checks.Options("quick", 24, 1).needed_calls, 0);
}

}  // namespace
}  // namespace pawl
