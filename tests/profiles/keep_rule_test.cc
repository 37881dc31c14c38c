#include "profiles/keep_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "profiles/verdict_protocol.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// `pairs` log ratios around a gain, alternating by +-spread, so that their mean is the gain itself.
PairBatch Pairs(double gain, double spread = 0.002, int pairs = 12) {
  PairBatch batch;
  for (int i = 0; i < pairs; ++i) batch.log_ratios.push_back(std::log1p(gain) + (i % 2 == 0 ? spread : -spread));
  return batch;
}

v1::ProcessNoise Noise(double sd = 0.001, double degrees = 20) {
  v1::ProcessNoise noise;
  noise.set_variance(sd * sd);
  noise.set_degrees(degrees);
  return noise;
}

v1::Comparison Judged(std::vector<PairBatch> processes, const KeepRule& rule = {}) {
  return Compare(processes, Noise(), rule);
}

TEST(Compare, CallsAClearGainInTwoProcessesFaster) {
  const v1::Comparison c = Judged({Pairs(0.046), Pairs(0.044)});
  EXPECT_EQ(c.result(), v1::FASTER);
  EXPECT_GT(c.lower(), std::log1p(0.01));
  EXPECT_EQ(c.processes(), 2);
  EXPECT_EQ(c.pairs(), 24);
  EXPECT_THAT(c.reason(), HasSubstr("Faster: +4.50 % (99 % of further measurements lie between +"));
  EXPECT_THAT(c.reason(), HasSubstr("; 2 processes, 24 pairs)"));
}

TEST(Compare, NeverCallsAGainInOneProcessFaster) {
  const v1::Comparison c = Judged({Pairs(0.5)});
  EXPECT_EQ(c.result(), v1::UNCLEAR);
  EXPECT_THAT(c.reason(), HasSubstr("not confirmed in a second process"));
}

TEST(Compare, CallsAClearLossInOneProcessSlower) {
  const v1::Comparison c = Judged({Pairs(-0.05)});
  EXPECT_EQ(c.result(), v1::SLOWER);
  EXPECT_THAT(c.reason(), HasSubstr("; 1 process, 12 pairs)"));
}

TEST(Compare, CallsANarrowIntervalAroundNothingTheSame) { EXPECT_EQ(Judged({Pairs(0)}).result(), v1::SAME); }

TEST(Compare, CallsAWideIntervalUnclear) {
  EXPECT_EQ(Judged({Pairs(0, 0.05)}).result(), v1::UNCLEAR);
  EXPECT_THAT(Judged({Pairs(0.02, 0.03), Pairs(0.02, 0.03)}).reason(), HasSubstr("the interval includes +1 %"));
  EXPECT_THAT(Judged({Pairs(-0.02, 0.01)}).reason(), HasSubstr("the interval includes -1 %"));
  EXPECT_THAT(Judged({Pairs(-0.02, 0.03)}).reason(), HasSubstr("the interval includes +1 % and -1 %"));
}

TEST(Compare, DoesNotKeepARealGainBelowTheMinimum) {
  EXPECT_EQ(Judged({Pairs(0.005, 0.0005), Pairs(0.005, 0.0005)}).result(), v1::SAME);
}

TEST(Compare, TakesTheThresholdFromTheRule) {
  KeepRule strict;
  strict.min_gain = 0.10;
  EXPECT_EQ(Judged({Pairs(0.05), Pairs(0.05)}, strict).result(), v1::SAME);
}

TEST(Compare, BoundsAreForAFurtherProcess) {
  // One process: its pairs vary by s^2 = 0.01^2 * 12 / 11, so by s^2 / 12 its mean, and so does the further one. With
  // both from the same noise of 0.001, the variance is 2 (0.001^2 + s^2 / 12), with Satterthwaite's 13.5 degrees.
  const v1::Comparison c = Judged({Pairs(0, 0.01)});
  const double process = 2 * 1e-6, pairs = 2 * 1e-4 / 11, all = process + pairs;
  EXPECT_NEAR(all * all / (process * process / 20 + pairs * pairs / 11), 13.4635, 1e-3);
  EXPECT_NEAR(c.mean_log_ratio(), 0, 1e-12);
  EXPECT_NEAR(c.upper(), 2.9952 * std::sqrt(all), 2e-5) << "between t(0.995, 13) = 3.012 and t(0.995, 14) = 2.977";
  EXPECT_NEAR(c.lower(), -c.upper(), 1e-12);
}

TEST(Compare, WidensTheBoundsByTheVarianceBetweenItsProcesses) {
  const v1::Comparison agreeing = Judged({Pairs(0.05), Pairs(0.05)});
  const v1::Comparison differing = Judged({Pairs(0.048), Pairs(0.052)});
  EXPECT_NEAR(differing.mean_log_ratio(), agreeing.mean_log_ratio(), 1e-5);
  EXPECT_LT(differing.lower(), agreeing.lower());
}

TEST(Compare, DoesNotBelieveTwoProcessesThatDifferByMoreThanTheirNoise) {
  const v1::Comparison c = Judged({Pairs(0.548), Pairs(0.491)});
  EXPECT_EQ(c.result(), v1::UNCLEAR);
  EXPECT_THAT(c.reason(), HasSubstr("the processes differ by more than their noise: +54.80 %, +49.10 %"));
}

TEST(Compare, GoesByTheirOwnVarianceWhereAllProcessesDiffer) {
  const v1::Comparison c = Judged({Pairs(0.548), Pairs(0.491), Pairs(0.54), Pairs(0.50)});
  EXPECT_EQ(c.result(), v1::FASTER);
  EXPECT_LT(c.lower(), std::log1p(0.40)) << c.reason();
  EXPECT_GT(c.upper(), std::log1p(0.60)) << c.reason();
  EXPECT_EQ(Judged({Pairs(0.1), Pairs(0.0), Pairs(0.1), Pairs(0.0)}).result(), v1::UNCLEAR);
}

TEST(Compare, AssumesMuchNoiseWhereNothingIsKnown) {
  const std::vector<PairBatch> processes = {Pairs(0.05), Pairs(0.05)};
  const v1::Comparison unknown = Compare(processes, v1::ProcessNoise(), KeepRule());
  EXPECT_EQ(unknown.lower(), Compare(processes, UnknownNoise(), KeepRule()).lower());
  EXPECT_LT(unknown.lower(), Judged(processes).lower());
}

TEST(Compare, IsUnclearWhenTenPairsWereThrownAwayInAll) {
  std::vector<PairBatch> processes = {Pairs(0.05), Pairs(0.05)};
  processes[0].discarded = 5;
  processes[1].discarded = 4;
  EXPECT_EQ(Judged(processes).result(), v1::FASTER);
  processes[1].discarded = 5;
  const v1::Comparison c = Judged(processes);
  EXPECT_EQ(c.result(), v1::UNCLEAR);
  EXPECT_THAT(c.reason(), HasSubstr("10 pairs were discarded"));
  EXPECT_FALSE(WantsProcess(c, KeepRule()));
}

TEST(Compare, IsUnclearWithTooFewPairsInAProcess) {
  EXPECT_THAT(Judged({Pairs(0.5, 0.0001, 11)}).reason(), HasSubstr("only 11 pairs were measured"));
  EXPECT_EQ(Judged({Pairs(0.5), Pairs(0.5, 0.0001, 11)}).result(), v1::UNCLEAR);
  EXPECT_EQ(Judged({Pairs(0.5, 0.0001, 1)}).result(), v1::UNCLEAR);
  EXPECT_EQ(Judged({PairBatch()}).result(), v1::UNCLEAR);
  EXPECT_EQ(Judged({}).result(), v1::UNCLEAR);
}

TEST(Compare, IsUnclearWhenATimeIsNoNumber) {
  for (double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
    PairBatch broken = Pairs(0.05);
    broken.log_ratios[3] = bad;
    EXPECT_EQ(Judged({Pairs(0.05), broken}).result(), v1::UNCLEAR);
  }
}

TEST(Compare, IsNotMisledByPairsWithoutAnySpread) {
  EXPECT_EQ(Judged({Pairs(0.05, 0), Pairs(0.05, 0)}).result(), v1::FASTER);
  EXPECT_EQ(Judged({Pairs(0, 0)}).result(), v1::SAME);
}

KeepRule SureRule() {
  KeepRule rule;
  rule.sure_pairs = 2;
  return rule;
}

// A kernel that guesses, and begins again where the guess was wrong: it is right, and slow with some inputs.
TEST(Compare, CountsTheTimeOfPairsThatAreFarSlowerThanOthers) {
  PairBatch process = Pairs(1.0, 0.002, 36);           // twice as fast
  process.log_ratios[7] = process.log_ratios[23] = 0;  // as fast as its parent with some
  EXPECT_EQ(Judged({process, process}).result(), v1::FASTER);
  process.log_ratios[7] = process.log_ratios[23] = std::log(1.0 / 10);  // 34 times 0.5 and 2 times 10, for 36 times 1
  const v1::Comparison slow = Judged({process, process});
  EXPECT_GT(slow.lower(), std::log1p(0.01)) << "its logarithms say that it is faster";
  EXPECT_EQ(slow.result(), v1::UNCLEAR) << slow.reason();
  EXPECT_THAT(slow.reason(), HasSubstr("some pairs took far longer than others: over the time of all it is -2.70 %"));
}

TEST(FewPairs, AreEnoughForWhatIsMuchSlowerOnlyAndWhereTheRuleAllowsIt) {
  const v1::Comparison c = Judged({Pairs(-0.2, 0.002, 2)}, SureRule());
  EXPECT_EQ(c.result(), v1::SLOWER);
  EXPECT_THAT(c.reason(), HasSubstr("; 1 process, 2 pairs)"));
  EXPECT_EQ(Judged({Pairs(-0.2, 0.002, 2)}).result(), v1::UNCLEAR);
  for (const double gain : {-0.08, 0.0, 0.5}) {
    EXPECT_THAT(Judged({Pairs(gain, 0.002, 2)}, SureRule()).reason(), HasSubstr("only 2 pairs were measured")) << gain;
  }
  EXPECT_EQ(Judged({Pairs(-0.5, 0, 1)}, SureRule()).result(), v1::UNCLEAR);
  EXPECT_EQ(Judged({Pairs(-0.2, 0.1, 2)}, SureRule()).result(), v1::UNCLEAR) << "they spread too widely";
  EXPECT_EQ(Judged({Pairs(-0.5), Pairs(-0.5, 0.002, 2)}, SureRule()).result(), v1::UNCLEAR) << "of a further process";
  const std::vector<SizePairs> sizes = {{"a", 0.5, {Pairs(-0.5, 0.002, 2)}}, {"b", 0.5, {Pairs(-0.5, 0.002, 2)}}};
  EXPECT_EQ(CompareSizes(sizes, Noise(), SureRule()).result(), v1::UNCLEAR) << "of several sizes";
}

TEST(FewPairs, HaveTheIntervalOfAnAssumedSpread) {
  // Of 0.04 with 20 degrees, and a further process of 12 pairs.
  const v1::Comparison c = Judged({Pairs(-0.2, 0, 2)}, SureRule());
  const double process = 2 * 1e-6, pairs = 0.04 * 0.04 * (1.0 / 2 + 1.0 / 12);
  EXPECT_NEAR(c.upper() - c.mean_log_ratio(), 2.845 * std::sqrt(process + pairs), 2e-4) << "t(0.995, 20) = 2.845";
  // Their own spread of 0.04 adds as much, with one degree: 3.8 in all, where t is above 4.6.
  const v1::Comparison wide = Judged({Pairs(-0.3, 0.04 / std::sqrt(2), 2)}, SureRule());
  EXPECT_GT(wide.upper() - wide.mean_log_ratio(), 4.6 * std::sqrt(process + 2 * pairs));
}

TEST(SurelySlower, IsWhatWouldBeJudgedSlower) {
  const double below = SureBelow(Noise(), SureRule());
  EXPECT_NEAR(below, std::log(0.908), 0.001);
  for (const double apart : {0.0, 0.01, 0.02}) {
    const PairBatch batch{{below - 1e-6, below - 1e-6 - apart}};
    EXPECT_TRUE(SurelySlower(batch.log_ratios, Noise(), SureRule()));
    EXPECT_EQ(Judged({batch}, SureRule()).result(), v1::SLOWER) << apart;
  }
  EXPECT_EQ(Judged({PairBatch{{below - 0.001, below - 0.2}}}, SureRule()).result(), v1::UNCLEAR) << "more is measured";
  const PairBatch above{{below + 1e-6, below + 1e-6}};
  EXPECT_EQ(Judged({above}, SureRule()).result(), v1::UNCLEAR);
  EXPECT_FALSE(SurelySlower(above.log_ratios, Noise(), SureRule()));
  EXPECT_FALSE(SurelySlower(std::vector<double>{-1, -1, 0}, Noise(), SureRule())) << "all must be";
  EXPECT_FALSE(SurelySlower(std::vector<double>{-1}, Noise(), SureRule()));
  EXPECT_FALSE(SurelySlower(std::vector<double>{-1, -1}, Noise(), KeepRule()));
  KeepRule strict = SureRule();
  strict.min_gain = 0.1;
  EXPECT_LT(SureBelow(Noise(), strict), below - 0.08);
}

bool WantsMorePairs(const PairBatch& first, const v1::ProcessNoise& noise, const KeepRule& rule) {
  const SizePairs only{"", 1, {first}};
  return !WantMorePairs({&only, 1}, noise, rule).empty();
}

TEST(WantsMorePairs, OnlyWhereTheyCouldDecide) {
  const KeepRule rule;
  EXPECT_TRUE(WantsMorePairs(Pairs(0, 0.05), Noise(), rule));
  EXPECT_TRUE(WantsMorePairs(Pairs(-0.012, 0.01), Noise(), rule));
  EXPECT_FALSE(WantsMorePairs(Pairs(0, 0.05, 36), Noise(), rule)) << "it was extended";
  EXPECT_FALSE(WantsMorePairs(Pairs(0.05), Noise(), rule)) << "a second process must confirm it";
  EXPECT_FALSE(WantsMorePairs(Pairs(-0.05), Noise(), rule)) << "it is slower";
  EXPECT_FALSE(WantsMorePairs(Pairs(0), Noise(), rule)) << "it is the same";
  EXPECT_FALSE(WantsMorePairs(Pairs(0.01), Noise(0.01), rule)) << "all of it is the noise between processes";
}

SizePairs AtSize(const std::string& size, double weight, std::vector<PairBatch> processes) {
  return {size, weight, std::move(processes)};
}

v1::Comparison JudgedSizes(std::vector<SizePairs> sizes) { return CompareSizes(sizes, Noise(), KeepRule()); }

TEST(CompareSizes, IsTheSameAsCompareForOneSize) {
  const std::vector<PairBatch> processes = {Pairs(0.03, 0.01), Pairs(0.028, 0.008)};
  const v1::Comparison one = Judged(processes), sized = JudgedSizes({AtSize("main", 1, processes)});
  EXPECT_EQ(one.SerializeAsString(), sized.SerializeAsString());
}

TEST(CompareSizes, WeighsMeansAndSquaresWeightsOfVariances) {
  const std::vector<PairBatch> few = {Pairs(0.2, 0), Pairs(0.2, 0)}, many = {Pairs(0, 0), Pairs(0, 0)};
  const v1::Comparison c = JudgedSizes({AtSize("a", 0.5, few), AtSize("b", 0.5, many)});
  EXPECT_NEAR(c.mean_log_ratio(), 0.5 * std::log(1.2), 1e-9);
  const v1::Comparison one = Judged(few);
  // Two sizes of equal weight have half the variance.
  EXPECT_NEAR(c.upper() - c.lower(), (one.upper() - one.lower()) / std::sqrt(2), 1e-6);
}

TEST(CompareSizes, CallsNothingFasterThatWasNotTimedAtEverySize) {
  const v1::Comparison c = JudgedSizes({AtSize("a", 0.9, {Pairs(0.5), Pairs(0.5)}), AtSize("b", 0.1, {})});
  EXPECT_EQ(c.result(), v1::UNCLEAR);
  EXPECT_NEAR(c.mean_log_ratio(), std::log(1.5), 1e-3) << "of what was timed";
  EXPECT_THAT(c.reason(), HasSubstr("not timed at b"));
}

TEST(CompareSizes, BoundsWhatWasNotTimedByWhatItIsTakenToGainAtMost) {
  const v1::Comparison c = JudgedSizes({AtSize("a", 0.6, {Pairs(-0.4)}), AtSize("b", 0.4, {})});
  EXPECT_EQ(c.result(), v1::SLOWER);
  EXPECT_NEAR(c.upper(), 0.6 * std::log(0.6) + 0.4 * std::log(1.5), 0.005);
  EXPECT_LT(c.lower(), c.mean_log_ratio());
}

TEST(CompareSizes, CountsProcessesThatTimedEverySize) {
  const v1::Comparison c = JudgedSizes({AtSize("a", 0.5, {Pairs(0.05), Pairs(0.05)}), AtSize("b", 0.5, {Pairs(0.05)})});
  EXPECT_EQ(c.processes(), 1);
  EXPECT_EQ(c.result(), v1::UNCLEAR) << "no second process confirmed it";
}

TEST(SurelyBelow, NeedsALossBeyondDoubt) {
  const KeepRule rule;
  EXPECT_TRUE(SurelyBelow(AtSize("a", 1, {Pairs(-0.1)}), 0.95, Noise(), rule));
  EXPECT_FALSE(SurelyBelow(AtSize("a", 1, {Pairs(-0.04)}), 0.95, Noise(), rule));
  EXPECT_FALSE(SurelyBelow(AtSize("a", 1, {Pairs(-0.1, 0.2)}), 0.95, Noise(), rule)) << "it spreads too widely";
  EXPECT_FALSE(SurelyBelow(AtSize("a", 1, {Pairs(-0.9)}), 0, Noise(), rule)) << "there is no limit";
  EXPECT_FALSE(SurelyBelow(AtSize("a", 1, {}), 1, Noise(), rule)) << "it was not timed";
}

TEST(KeepRuleOf, TakesTheCampaignsThresholdWhereThereIsOne) {
  v1::KeepSettings settings;
  EXPECT_EQ(KeepRuleOf(settings).min_gain, KeepRule().min_gain);
  settings.set_min_gain(0.05);
  EXPECT_EQ(KeepRuleOf(settings).min_gain, 0.05);
}

// Serves prepared batches, one list a process, and remembers what was asked for.
class ScriptedProcesses {
 public:
  explicit ScriptedProcesses(std::vector<std::vector<PairBatch>> batches, const KeepRule& rule = {})
      : batches_(std::move(batches)), rule_(rule) {}

  absl::StatusOr<v1::Comparison> Run() {
    return CompareByProtocol(
        [this](int process) -> absl::StatusOr<PairSource> {
          EXPECT_EQ(process, processes_++);
          return PairSource([this, at = static_cast<size_t>(process),
                             next = size_t{0}](int pairs) mutable -> absl::StatusOr<PairBatch> {
            asked_.push_back(pairs);
            if (at >= batches_.size() || next >= batches_[at].size()) {
              return absl::UnavailableError("the runner ended");
            }
            return batches_[at][next++];
          });
        },
        Noise(), rule_);
  }
  int processes() const { return processes_; }
  const std::vector<int>& asked() const { return asked_; }

 private:
  std::vector<std::vector<PairBatch>> batches_;
  const KeepRule rule_;
  int processes_ = 0;
  std::vector<int> asked_;
};

TEST(Protocol, EndsAfterTwelvePairsWhenTheAnswerIsPlain) {
  ScriptedProcesses processes({{Pairs(-0.05)}});
  EXPECT_EQ(processes.Run()->result(), v1::SLOWER);
  EXPECT_THAT(processes.asked(), ElementsAre(12));
}

TEST(Protocol, EndsAfterTwoPairsOfWhatIsMuchSlower) {
  ScriptedProcesses processes({{Pairs(-0.3, 0.01, 2)}}, SureRule());
  EXPECT_EQ(processes.Run()->result(), v1::SLOWER);
  EXPECT_THAT(processes.asked(), ElementsAre(12));
}

TEST(Protocol, GoesOnInTheSameProcessWhereFewPairsDoNotShowIt) {
  ScriptedProcesses processes({{Pairs(-0.2, 0.1, 2), Pairs(-0.2, 0.02, 10)}}, SureRule());
  const auto c = processes.Run();
  EXPECT_EQ(c->result(), v1::SLOWER) << c->reason();
  EXPECT_EQ(c->pairs(), 12);
  EXPECT_THAT(processes.asked(), ElementsAre(12, 10));
  EXPECT_EQ(processes.processes(), 1);
}

TEST(Protocol, ExtendsWhatItWentOnWith) {
  ScriptedProcesses processes({{Pairs(-0.05, 0.002, 2), Pairs(0, 0.03, 10), Pairs(0, 0.03, 24)}}, SureRule());
  EXPECT_EQ(processes.Run()->pairs(), 36);
  EXPECT_THAT(processes.asked(), ElementsAre(12, 10, 24));
}

TEST(Protocol, DoesNotGoOnWhereTheGpuWasUnsteady) {
  PairBatch few = Pairs(-0.05, 0.002, 2);
  few.discarded = 10;
  ScriptedProcesses processes({{few}}, SureRule());
  EXPECT_EQ(processes.Run()->result(), v1::UNCLEAR);
  EXPECT_THAT(processes.asked(), ElementsAre(12));
}

TEST(Protocol, ExtendsAnUnclearFirstProcessOnce) {
  ScriptedProcesses processes({{Pairs(0, 0.03), Pairs(0, 0.03, 24)}});
  const auto c = processes.Run();
  EXPECT_EQ(c->result(), v1::UNCLEAR);
  EXPECT_EQ(c->pairs(), 36);
  EXPECT_THAT(processes.asked(), ElementsAre(12, 24));
  EXPECT_EQ(processes.processes(), 1);
}

TEST(Protocol, AsksAFreshProcessBeforeItSaysFaster) {
  ScriptedProcesses agreeing({{Pairs(0.05)}, {Pairs(0.05, 0.002, 36)}});
  EXPECT_EQ(agreeing.Run()->result(), v1::FASTER);
  EXPECT_THAT(agreeing.asked(), ElementsAre(12, 36));
}

TEST(Protocol, EndsWhenTheFreshProcessSeesNoGain) {
  ScriptedProcesses disagreeing({{Pairs(0.013), Pairs(0.013, 0.002, 24)}, {Pairs(0.004, 0.002, 36)}});
  EXPECT_NE(disagreeing.Run()->result(), v1::FASTER);
  EXPECT_EQ(disagreeing.processes(), 2);
}

TEST(Protocol, AsksMoreProcessesWhereTwoDisagreeAndFourDecide) {
  ScriptedProcesses processes(
      {{Pairs(0.548)}, {Pairs(0.491, 0.002, 36)}, {Pairs(0.54, 0.002, 36)}, {Pairs(0.50, 0.002, 36)}, {}});
  const auto c = processes.Run();
  EXPECT_EQ(c->result(), v1::FASTER);
  EXPECT_EQ(c->processes(), 4);
  EXPECT_EQ(processes.processes(), 4);
}

TEST(Protocol, EndsUnclearAfterFourProcessesThatLeaveTheThresholdOpen) {
  const PairBatch little = Pairs(0.012, 0.002, 36);
  ScriptedProcesses processes({{Pairs(0.012), Pairs(0.012, 0.002, 24)}, {little}, {little}, {little}, {little}});
  EXPECT_EQ(processes.Run()->result(), v1::UNCLEAR);
  EXPECT_EQ(processes.processes(), 4);
}

TEST(Protocol, CountsPairsThrownAwayInBothBatches) {
  PairBatch first = Pairs(0, 0.03), more = Pairs(0, 0.03, 24);
  first.discarded = 6;
  more.discarded = 4;
  ScriptedProcesses processes({{first, more}});
  EXPECT_EQ(processes.Run()->discarded(), 10);
}

TEST(Protocol, PassesOnTheFaultOfAProcess) {
  ScriptedProcesses processes({{Pairs(0.05)}});
  EXPECT_EQ(processes.Run().status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pawl
