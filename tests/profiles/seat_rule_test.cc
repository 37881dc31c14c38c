// How often the seat rule is wrong, with noise resampled from series of an H200.
#include "profiles/seat_rule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "profiles/gates.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"
#include "tests/profiles/recorded_series.h"

namespace pawl {
namespace {

v1::SeatTime Time(double log_time, int processes = 2, double pair_sd = 0.0005) {
  v1::SeatTime time;
  time.set_log_time(log_time);
  time.set_processes(processes);
  time.set_pair_variance(pair_sd * pair_sd);
  return time;
}

TEST(SeatRule, IsTheMeanOverProcessesWithTheVarianceThatPairsGiveIt) {
  const v1::SeatTime time = SeatTimeOf({{0.1, 0.2, 0.3}, {0.5, 0.5}});
  EXPECT_NEAR(time.log_time(), (0.2 + 0.5) / 2, 1e-12);
  EXPECT_EQ(time.processes(), 2);
  EXPECT_NEAR(time.pair_variance(), (0.01 / 3 + 0) / 4, 1e-12);
}

TEST(SeatRule, IsTheWeightedMeanOverSizes) {
  const std::vector<SizeLogs> sizes = {{0.25, {{0.1, 0.2, 0.3}, {0.5, 0.5}}}, {0.75, {{0.4, 0.4}, {0.1, 0.3}}}};
  const v1::SeatTime time = SeatTimeOf(sizes);
  EXPECT_NEAR(time.log_time(), 0.25 * 0.35 + 0.75 * 0.3, 1e-12);
  EXPECT_EQ(time.processes(), 2);
  EXPECT_NEAR(time.pair_variance(), 0.0625 * (0.01 / 3 / 4) + 0.5625 * (0.02 / 2 / 4), 1e-12);
}

TEST(SeatRule, OfOneSizeIsTheSameToTheBit) {
  const std::vector<std::vector<double>> processes = {{0.1, 0.23, 0.37}, {0.51, 0.52}};
  const std::vector<SizeLogs> one = {{1, processes}};
  EXPECT_EQ(SeatTimeOf(one).SerializeAsString(), SeatTimeOf(processes).SerializeAsString());
}

v1::PairSample Pair(const std::string& size, double log_time, int calls, bool single = false) {
  v1::PairSample pair;
  pair.set_size(size);
  pair.set_parent_us(std::exp(log_time));
  pair.set_witness_us(1);
  pair.set_calls(calls);
  pair.set_single(single);
  return pair;
}

// Two pairs at each of two sizes, the lighter one first.
std::vector<v1::PairSample> Process(double at_small, double at_main, int calls_at_small = 4, int calls_at_main = 3) {
  const v1::PairSample small = Pair("small", at_small, calls_at_small), main = Pair("main", at_main, calls_at_main);
  return {small, main, small, main};
}

v1::SeatTime OverBoth(const std::vector<std::vector<v1::PairSample>>& processes) {
  return SeatPairs(processes, {{"small", 0.4}, {"main", 0.6}}, "main")
      .Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
}

TEST(SeatPairs, AreOfTheProcessesThatTimedEverySize) {
  std::vector<v1::PairSample> partial = Process(7, 7);
  std::erase_if(partial, [](const v1::PairSample& pair) { return pair.size() == "small"; });
  const v1::SeatTime time = OverBoth({Process(0.1, 0.2), partial, Process(0.3, 0.2), partial});
  EXPECT_EQ(time.processes(), 2);
  EXPECT_NEAR(time.log_time(), 0.4 * 0.2 + 0.6 * 0.2, 1e-12);
  EXPECT_EQ(OverBoth({partial, partial}).processes(), 0);
  EXPECT_EQ(OverBoth({}).processes(), 0);
}

TEST(SeatPairs, AreOfTheProcessesAllOfWhosePairsHaveTheTimes) {
  std::vector<v1::PairSample> unwitnessed = Process(7, 7);
  unwitnessed[0].clear_witness_us();
  const v1::SeatTime time = OverBoth({unwitnessed, Process(0.1, 0.2)});
  EXPECT_EQ(time.processes(), 1);
  EXPECT_NEAR(time.log_time(), 0.4 * 0.1 + 0.6 * 0.2, 1e-12);
}

TEST(SeatPairs, AreOfTheProcessesThatWereTimedAsTheLastAtEverySize) {
  const v1::SeatTime time = OverBoth({Process(7, 7, 4, 3), Process(0.1, 0.2, 5, 3)});
  EXPECT_EQ(time.processes(), 1);
  EXPECT_NEAR(time.log_time(), 0.4 * 0.1 + 0.6 * 0.2, 1e-12);
}

// Times may depend on the inputs that problem.py makes.
TEST(SeatPairs, AreOfTheProcessesThatHadTheInputsOfTheLast) {
  const auto with_data = [](std::vector<v1::PairSample> process, uint32_t small, uint32_t main) {
    for (v1::PairSample& pair : process) pair.set_data(pair.size() == "small" ? small : main);
    return process;
  };
  const auto time_of = [](const std::vector<std::vector<v1::PairSample>>& processes) {
    const SeatPairs pairs(processes, {{"small", 0.5}, {"main", 0.5}}, "main");
    return pairs.Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
  };
  const v1::SeatTime last = time_of(
      {with_data(Process(0.1, 0.1), 1, 2), with_data(Process(0.3, 0.3), 1, 3), with_data(Process(0.3, 0.3), 1, 3)});
  EXPECT_EQ(last.processes(), 2);
  EXPECT_NEAR(last.log_time(), 0.3, 1e-12);
  const v1::SeatTime fills = time_of({Process(0.1, 0.1)}), same = time_of({with_data(Process(0.2, 0.2), 1, 3)}),
                     others = time_of({with_data(Process(0.2, 0.2), 3, 1)});
  EXPECT_EQ(fills.data(), 0);
  EXPECT_TRUE(TimedAlike(last, same));
  EXPECT_FALSE(TimedAlike(last, others));
  EXPECT_FALSE(TimedAlike(last, fills));
}

// A process may time a lighter size twice, first a few pairs and then more.
TEST(SeatPairs, AreThereWhereEveryProcessWasTimedInTwoWays) {
  std::vector<v1::PairSample> mixed = Process(7, 0.2);
  for (int i = 0; i < 3; ++i) mixed.push_back(Pair("small", 0.1, 1, /*single=*/true));
  const v1::SeatTime time = OverBoth({mixed, mixed});
  EXPECT_EQ(time.processes(), 1) << "the last";
  EXPECT_NEAR(time.log_time(), 0.4 * 0.1 + 0.6 * 0.2, 1e-12);
  EXPECT_TRUE(time.single());
}

TEST(SeatPairs, AreAlikeOnlyWhereEverySizeWasTimedAlike) {
  const v1::SeatTime time = OverBoth({Process(0, 0, 4, 3)});
  EXPECT_TRUE(TimedAlike(time, OverBoth({Process(1, 1, 4, 3)})));
  EXPECT_FALSE(TimedAlike(time, OverBoth({Process(0, 0, 5, 3)})));
  EXPECT_FALSE(TimedAlike(time, OverBoth({Process(0, 0, 3, 4)}))) << "as many in all";
  EXPECT_FALSE(TimedAlike(time, OverBoth({Process(0, 0, 0, 3)}))) << "not known: it may be a time at one size";
  v1::SeatTime of_main = SeatPairs({Process(0, 0, 4, 3)}, {{"main", 1}}, "main")
                             .Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
  EXPECT_EQ(of_main.calls(), 3);
  EXPECT_TRUE(TimedAlike(of_main, v1::SeatTime())) << "not known, and of one size as well";
  EXPECT_FALSE(TimedAlike(time, of_main)) << "of one of the sizes";
  std::vector<v1::PairSample> single_small = Process(0, 0, 1, 1), single_main = single_small;
  for (v1::PairSample& pair : single_small) pair.set_single(pair.size() == "small");
  for (v1::PairSample& pair : single_main) pair.set_single(pair.size() == "main");
  EXPECT_TRUE(OverBoth({single_small}).single());
  EXPECT_TRUE(OverBoth({single_main}).single());
  EXPECT_FALSE(TimedAlike(OverBoth({single_small}), OverBoth({single_main})));
}

TEST(SeatPairs, TellHowCallsWereTimedAtEachOfAFewSizes) {
  std::vector<v1::PairSample> single_main = Process(0, 0, 4, 1);
  for (v1::PairSample& pair : single_main) pair.set_single(pair.size() == "main");
  std::vector<v1::PairSample> ways(2);
  ASSERT_TRUE(SetCallsOfSizes(OverBoth({single_main}), ways));
  EXPECT_TRUE(!ways[0].single() && ways[0].calls() == 4);
  EXPECT_TRUE(ways[1].single() && ways[1].calls() == 1);
  ASSERT_TRUE(SetCallsOfSizes(OverBoth({Process(0, 0, 20, 3)}), ways));
  EXPECT_TRUE(!ways[0].single() && ways[0].calls() == 20);
  EXPECT_TRUE(!ways[1].single() && ways[1].calls() == 3);

  v1::SeatTime of_one;
  EXPECT_FALSE(SetCallsOfSizes(of_one, std::span(ways).first(1))) << "not known";
  of_one.set_calls(7);
  ASSERT_TRUE(SetCallsOfSizes(of_one, std::span(ways).first(1)));
  EXPECT_EQ(ways[0].calls(), 7);
  EXPECT_FALSE(SetCallsOfSizes(of_one, ways)) << "a time at one size";
  std::vector<v1::PairSample> many(5);
  of_one.set_calls(404040404);
  EXPECT_FALSE(SetCallsOfSizes(of_one, many));
}

TEST(SeatPairs, OfManySizesDifferWhereTheCallsOfOneDo) {
  std::vector<SizeWeight> sizes;
  for (int i = 0; i < 20; ++i) sizes.push_back({"size" + std::to_string(i), 0.05});
  const auto time = [&](int differs) {
    std::vector<v1::PairSample> pairs;
    for (int i = 0; i < 20; ++i) {
      for (int pair = 0; pair < 2; ++pair) pairs.push_back(Pair(sizes[i].size, 0, i == differs ? 19 : 20));
    }
    return SeatPairs({pairs}, sizes, "size0").Time(&v1::PairSample::parent_us, &v1::PairSample::witness_us);
  };
  EXPECT_GT(time(-1).calls(), 0);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(TimedAlike(time(-1), time(i))) << i;
}

TEST(SeatRule, FailsAParentThatIsSlowerByMoreThanTheNoiseOnly) {
  const v1::ProcessNoise noise = NoiseOf("h200");
  EXPECT_FALSE(TestSeat(Time(-0.1), Time(-0.1), noise, 0.0005).failed());
  EXPECT_TRUE(TestSeat(Time(-0.1), Time(-0.08), noise, 0.0005).failed());
  EXPECT_FALSE(TestSeat(Time(-0.08), Time(-0.1), noise, 0.0005).failed()) << "faster as a parent: its own loss";
}

TEST(SeatRule, SaysWhetherABiasIsExcluded) {
  const v1::ProcessNoise noise = NoiseOf("h200");
  EXPECT_TRUE(TestSeat(Time(-0.1), Time(-0.1), noise, 0.0005).excluded);
  EXPECT_FALSE(TestSeat(Time(-0.1), Time(-0.085), noise, 0.0005).excluded);
  v1::ProcessNoise loud;
  loud.set_variance(0.01 * 0.01);
  loud.set_degrees(6);
  EXPECT_FALSE(TestSeat(Time(-0.1), Time(-0.1), loud, 0.0005).excluded) << "too noisy to tell";
}

TEST(SeatRule, AllowsMoreWhereTheWitnessIsFarFromTheVariant) {
  const v1::ProcessNoise noise = NoiseOf("h200");
  const double near = TestSeat(Time(-0.05), Time(-0.05), noise, 0.0005).limit;
  EXPECT_GT(TestSeat(Time(-0.7), Time(-0.7), noise, 0.0005).limit, 1.5 * near);
}

TEST(SeatRule, ComparesTimesBesideTheSameWitnessOnly) {
  v1::SeatTime other = Time(0);
  other.set_witness(3);
  EXPECT_TRUE(ComparableSeats(Time(0), Time(0)));
  EXPECT_FALSE(ComparableSeats(Time(0), other));
  EXPECT_FALSE(ComparableSeats(Time(0), v1::SeatTime()));
  EXPECT_FALSE(ComparableSeats(v1::SeatTime(), Time(0)));
}

// The ratio of a recorded pair stands for that of a variant to its witness.
class RecordedSeats : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("PAWL_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    absl::StatusOr<RecordedSeries> series = RecordedSeries::Load(std::string(root) + "/tests/profiles/series", 3);
    ASSERT_TRUE(series.ok()) << series.status();
    series_ = *std::move(series);
    for (const RecordedSeries::Comparison& comparison : series_.comparisons()) {
      double mean = 0;
      for (const RecordedSeries::Process& process : comparison.processes) {
        mean += Mean(process.log_ratios) / static_cast<double>(comparison.processes.size());
      }
      (std::abs(mean) <= std::log(kNearWitness) ? near_ : far_).push_back({&comparison, mean});
    }
    ASSERT_GE(near_.size(), 10u);
    ASSERT_GE(far_.size(), 5u);
  }

  struct Kernel {
    const RecordedSeries::Comparison* comparison;
    double mean;
  };

  std::vector<double> Process(const Kernel& kernel, double bias) {
    std::vector<double> logs = series_.Draw(*kernel.comparison, bias, random_)(KeepRule().extended_pairs)->log_ratios;
    for (double& log : logs) log += kernel.mean;
    return logs;
  }

  // As a worker measures: until the witness shows a bias or excludes it, in at most three processes that confirm.
  bool Fails(const Kernel& kernel, int as_candidate, double bias) {
    std::vector<std::vector<double>> before, now;
    for (int i = 0; i < as_candidate; ++i) before.push_back(Process(kernel, 0));
    SeatTest test;
    while (static_cast<int>(now.size()) < KeepRule().max_processes - 1 && !test.excluded && !test.failed()) {
      now.push_back(Process(kernel, bias));
      test = TestSeat(SeatTimeOf(before), SeatTimeOf(now), NoiseOf("h200"),
                      Gates::Default().Get(GateKind::kSeat).threshold / 2);
    }
    return test.failed();
  }

  double Failing(const std::vector<Kernel>& kernels, int as_candidate, double bias, int trials) {
    int failed = 0;
    for (int i = 0; i < trials; ++i) failed += Fails(kernels[random_() % kernels.size()], as_candidate, bias);
    return static_cast<double>(failed) / trials;
  }

  RecordedSeries series_;
  std::vector<Kernel> near_, far_;
  std::mt19937_64 random_{20257};
};

TEST_F(RecordedSeats, PassHonestVariants) {
  for (const int as_candidate : {1, 2}) {
    EXPECT_LE(Failing(near_, as_candidate, 0, 20000), 0.001) << as_candidate;
    EXPECT_LE(Failing(far_, as_candidate, 0, 20000), 0.001) << as_candidate;
  }
}

TEST_F(RecordedSeats, FindABiasOfTwoPercentBesideANearWitness) {
  for (const int as_candidate : {1, 2}) EXPECT_GE(Failing(near_, as_candidate, kSeatBias, 10000), 0.99) << as_candidate;
}

TEST_F(RecordedSeats, FindABiasOfFourPercentBesideAFarOne) {
  for (const int as_candidate : {1, 2}) EXPECT_GE(Failing(far_, as_candidate, 0.04, 10000), 0.99) << as_candidate;
}

}  // namespace
}  // namespace pawl
