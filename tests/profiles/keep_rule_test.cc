#include "profiles/keep_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "profiles/verdict_protocol.h"

namespace pawl {
namespace {

// `pairs` log ratios around a gain, alternating by +-spread, so that their mean is about the gain itself.
std::vector<double> Ratios(double gain, double spread, int pairs = 7) {
  std::vector<double> ratios(pairs, std::log1p(gain));
  for (int i = 0; i < pairs; ++i) ratios[i] += i % 2 == 0 ? spread : -spread;
  return ratios;
}

TEST(Compare, CallsAClearGainFaster) {
  const v1::Comparison c = Compare(Ratios(0.05, 0.002), 0, KeepRule());
  EXPECT_EQ(c.result(), v1::FASTER);
  EXPECT_GT(c.lower(), std::log1p(0.01));
  EXPECT_NE(c.reason().find("7 pairs"), std::string::npos) << c.reason();
}

TEST(Compare, CallsAClearLossSlower) { EXPECT_EQ(Compare(Ratios(-0.05, 0.002), 0, KeepRule()).result(), v1::SLOWER); }

TEST(Compare, CallsANarrowIntervalAroundNothingTheSame) {
  EXPECT_EQ(Compare(Ratios(0, 0.002), 0, KeepRule()).result(), v1::SAME);
}

TEST(Compare, CallsAWideIntervalUnclear) {
  EXPECT_EQ(Compare(Ratios(0, 0.05), 0, KeepRule()).result(), v1::UNCLEAR);
  EXPECT_EQ(Compare(Ratios(0.02, 0.03), 0, KeepRule()).result(), v1::UNCLEAR);
}

TEST(Compare, DoesNotKeepARealGainBelowTheMinimum) {
  EXPECT_EQ(Compare(Ratios(0.005, 0.0005), 0, KeepRule()).result(), v1::SAME);
}

TEST(Compare, TakesTheThresholdFromTheRule) {
  KeepRule strict;
  strict.min_gain = 0.10;
  EXPECT_EQ(Compare(Ratios(0.05, 0.002), 0, strict).result(), v1::SAME);
}

TEST(Compare, BoundsAreOneSidedStudentT) {
  // Mean 0, sample deviation 0.01 * sqrt(8/7), 8 pairs: error 0.01 / sqrt(7), and t(0.99, 7) is 2.997952.
  const v1::Comparison c = Compare(Ratios(0, 0.01, 8), 0, KeepRule());
  EXPECT_NEAR(c.mean_log_ratio(), 0, 1e-12);
  EXPECT_NEAR(c.upper(), 2.997952 * 0.01 / std::sqrt(7.0), 1e-7);
  EXPECT_NEAR(c.lower(), -c.upper(), 1e-12);
}

TEST(Compare, IsUnclearWhenTenPairsWereThrownAway) {
  EXPECT_EQ(Compare(Ratios(0.05, 0.002), 9, KeepRule()).result(), v1::FASTER);
  const v1::Comparison c = Compare(Ratios(0.05, 0.002), 10, KeepRule());
  EXPECT_EQ(c.result(), v1::UNCLEAR);
  EXPECT_NE(c.reason().find("10 pairs were discarded"), std::string::npos) << c.reason();
  EXPECT_FALSE(WantsMorePairs(c, KeepRule()));
}

TEST(Compare, IsUnclearWithTooFewPairs) {
  EXPECT_EQ(Compare(Ratios(0.5, 0.0001, 6), 0, KeepRule()).result(), v1::UNCLEAR);
  EXPECT_EQ(Compare({}, 0, KeepRule()).result(), v1::UNCLEAR);
}

TEST(Compare, IsUnclearWhenATimeIsNoNumber) {
  std::vector<double> ratios = Ratios(0.05, 0.002);
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    ratios[3] = bad;
    EXPECT_EQ(Compare(ratios, 0, KeepRule()).result(), v1::UNCLEAR);
  }
}

TEST(WantsMorePairs, OnlyWhenUnclearAndNotYetExtended) {
  const KeepRule rule;
  EXPECT_TRUE(WantsMorePairs(Compare(Ratios(0, 0.05), 0, rule), rule));
  EXPECT_FALSE(WantsMorePairs(Compare(Ratios(0, 0.05, 15), 0, rule), rule));
  EXPECT_FALSE(WantsMorePairs(Compare(Ratios(0.05, 0.002), 0, rule), rule));
  EXPECT_FALSE(WantsMorePairs(Compare(Ratios(0, 0.002), 0, rule), rule));
}

TEST(Confirm, IsFasterOnlyWhenBothProcessesSaySo) {
  const KeepRule rule;
  const v1::Comparison faster = Compare(Ratios(0.05, 0.002), 0, rule);
  const v1::Comparison smaller = Compare(Ratios(0.03, 0.002), 0, rule);
  const v1::Comparison same = Compare(Ratios(0, 0.002), 0, rule);
  const v1::Comparison slower = Compare(Ratios(-0.05, 0.002), 0, rule);
  EXPECT_EQ(Confirm(faster, smaller, rule).result(), v1::FASTER);
  EXPECT_EQ(Confirm(faster, smaller, rule).mean_log_ratio(), smaller.mean_log_ratio());
  EXPECT_EQ(Confirm(faster, same, rule).result(), v1::UNCLEAR);
  EXPECT_EQ(Confirm(faster, slower, rule).result(), v1::UNCLEAR);
  EXPECT_EQ(Confirm(same, faster, rule).result(), v1::SAME);
  EXPECT_EQ(Confirm(slower, faster, rule).result(), v1::SLOWER);
}

TEST(ParentDrift, NamesBothTimesBeyondTenPercent) {
  EXPECT_FALSE(ParentDrift(10, 10.9, KeepRule()).has_value());
  EXPECT_FALSE(ParentDrift(10, 9.1, KeepRule()).has_value());
  EXPECT_FALSE(ParentDrift(0, 5, KeepRule()).has_value()) << "nothing is stored for the start variant";
  const std::optional<std::string> slow = ParentDrift(10, 11.5, KeepRule());
  ASSERT_TRUE(slow.has_value());
  EXPECT_NE(slow->find("11.500 us"), std::string::npos) << *slow;
  EXPECT_NE(slow->find("10.000 us"), std::string::npos) << *slow;
  EXPECT_TRUE(ParentDrift(10, 8.5, KeepRule()).has_value());
}

// Serves prepared batches, one list a process, and remembers what was asked for.
class ScriptedProcesses {
 public:
  explicit ScriptedProcesses(std::vector<std::vector<PairBatch>> batches) : batches_(std::move(batches)) {}

  PairSourceStarter Starter() {
    return [this]() -> absl::StatusOr<PairSource> {
      const size_t process = processes_++;
      return PairSource([this, process, next = size_t{0}](int pairs) mutable -> absl::StatusOr<PairBatch> {
        asked_.push_back(pairs);
        if (process >= batches_.size() || next >= batches_[process].size()) {
          return absl::UnavailableError("the runner ended");
        }
        return batches_[process][next++];
      });
    };
  }
  size_t processes() const { return processes_; }
  const std::vector<int>& asked() const { return asked_; }

 private:
  std::vector<std::vector<PairBatch>> batches_;
  size_t processes_ = 0;
  std::vector<int> asked_;
};

TEST(Protocol, EndsAfterSevenPairsWhenTheAnswerIsPlain) {
  ScriptedProcesses processes({{{Ratios(-0.05, 0.002)}}});
  EXPECT_EQ(CompareByProtocol(processes.Starter(), KeepRule())->result(), v1::SLOWER);
  EXPECT_EQ(processes.asked(), std::vector<int>({7}));
}

TEST(Protocol, ExtendsAnUnclearComparisonOnceToFifteen) {
  ScriptedProcesses processes({{{Ratios(0, 0.03)}, {Ratios(0, 0.03, 8)}}});
  const auto c = CompareByProtocol(processes.Starter(), KeepRule());
  EXPECT_EQ(c->result(), v1::UNCLEAR);
  EXPECT_EQ(c->pairs(), 15);
  EXPECT_EQ(processes.asked(), std::vector<int>({7, 8}));
}

TEST(Protocol, AsksAFreshProcessBeforeItSaysFaster) {
  ScriptedProcesses agreeing({{{Ratios(0.05, 0.002)}}, {{Ratios(0.04, 0.002)}}});
  EXPECT_EQ(CompareByProtocol(agreeing.Starter(), KeepRule())->result(), v1::FASTER);
  EXPECT_EQ(agreeing.processes(), 2u);
  ScriptedProcesses disagreeing({{{Ratios(0.05, 0.002)}}, {{Ratios(0, 0.002)}}});
  EXPECT_EQ(CompareByProtocol(disagreeing.Starter(), KeepRule())->result(), v1::UNCLEAR);
}

TEST(Protocol, CountsPairsThrownAwayInBothBatches) {
  ScriptedProcesses processes({{{Ratios(0, 0.03), 6}, {Ratios(0, 0.03, 8), 4}}});
  EXPECT_EQ(CompareByProtocol(processes.Starter(), KeepRule())->discarded(), 10);
}

TEST(Protocol, PassesOnTheFaultOfAProcess) {
  ScriptedProcesses processes({{{Ratios(0.05, 0.002)}}});
  EXPECT_EQ(CompareByProtocol(processes.Starter(), KeepRule()).status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pawl
