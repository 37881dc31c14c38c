// How often the keep rule is wrong, through the code that decides in the product.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "profiles/gpus.h"
#include "tests/profiles/recorded_series.h"
#include "tests/profiles/textbook_noise.h"

namespace pawl {
namespace {

// One process after another of the same comparison.
using Processes = std::function<PairSource()>;

// As of a campaign's iterations.
KeepRule Rule() {
  KeepRule rule;
  rule.sure_pairs = kSurePairs;
  return rule;
}

// As the runner does: the first pairs end once they show that the candidate is slower.
PairSource EndingWhenSlower(PairSource source, const v1::ProcessNoise& noise) {
  return [source = std::move(source), noise, below = SureBelow(noise, Rule()),
          first = true](int pairs) mutable -> absl::StatusOr<PairBatch> {
    if (!std::exchange(first, false)) return source(pairs);
    PairBatch batch;
    bool all_below = true;
    while (static_cast<int>(batch.log_ratios.size()) < pairs) {
      const absl::StatusOr<PairBatch> one = source(1);
      if (!one.ok()) return one;
      batch.log_ratios.push_back(one->log_ratios[0]);
      all_below = all_below && batch.log_ratios.back() < below;
      if (all_below && static_cast<int>(batch.log_ratios.size()) >= kSurePairs) break;
    }
    return batch;
  };
}

v1::Comparison Protocol(const Processes& processes, const v1::ProcessNoise& noise) {
  const auto start = [&](int process) { return process == 0 ? EndingWhenSlower(processes(), noise) : processes(); };
  return CompareByProtocol(start, noise, Rule()).value();
}

// Of so many comparisons, how many ended after two pairs; each of them says slower.
int EndEarly(const Processes& processes, const v1::ProcessNoise& noise, int comparisons) {
  int early = 0;
  for (int i = 0; i < comparisons; ++i) {
    const v1::Comparison comparison = Protocol(processes, noise);
    if (comparison.pairs() >= Rule().first_pairs) continue;
    EXPECT_EQ(comparison.result(), v1::SLOWER) << comparison.reason();
    EXPECT_EQ(comparison.pairs(), kSurePairs);
    ++early;
  }
  return early;
}

int Keeps(const Processes& processes, const v1::ProcessNoise& noise, int comparisons) {
  int keeps = 0;
  for (int i = 0; i < comparisons; ++i) keeps += Protocol(processes, noise).result() == v1::FASTER;
  return keeps;
}

bool Covers(const v1::Comparison& comparison, double further) {
  return comparison.lower() <= further && further <= comparison.upper();
}

class Textbook : public testing::Test {
 protected:
  Processes Of(double gain) {
    return [this, gain] { return noise_.Process(gain, random_); };
  }
  // The share of printed intervals that contain the mean of one more process.
  double Coverage(double gain, int comparisons) {
    int covered = 0;
    for (int i = 0; i < comparisons; ++i) {
      const v1::Comparison comparison = Protocol(Of(gain), noise_.Known());
      covered += Covers(comparison, Mean(noise_.Process(gain, random_)(KeepRule().extended_pairs)->log_ratios));
    }
    return static_cast<double>(covered) / comparisons;
  }
  TextbookNoise noise_;
  std::mt19937_64 random_{20251};
};

TEST_F(Textbook, KeepsNothingWhenAKernelIsComparedWithItself) { EXPECT_LE(Keeps(Of(0), noise_.Known(), 20000), 2); }

TEST_F(Textbook, KeepsATrueGainOfThreePercent) { EXPECT_GE(Keeps(Of(0.03), noise_.Known(), 2000), 1900); }

TEST_F(Textbook, PrintsIntervalsThatContainAFurtherProcess) {
  for (const double gain : {-0.5, -0.2, -0.1, -0.02, 0.0, 0.015, 0.03, 0.2}) {
    const double share = Coverage(gain, 20000);
    EXPECT_GE(share, 0.985) << gain;
    EXPECT_LE(share, 1.0) << gain;
  }
}

TEST_F(Textbook, NeedsTwoPairsOfWhatIsMuchSlower) {
  EXPECT_GE(EndEarly(Of(-0.1), noise_.Known(), 2000), 1000);
  for (const double gain : {-0.2, -0.5}) EXPECT_GE(EndEarly(Of(gain), noise_.Known(), 2000), 1990) << gain;
}

TEST_F(Textbook, DoesNotEndEarlyWhereAKernelIsComparedWithItself) {
  for (const double gain : {0.0, 0.03}) EXPECT_EQ(EndEarly(Of(gain), noise_.Known(), 20000), 0) << gain;
  // As much as is assumed.
  noise_.pair = 0.04;
  EXPECT_LE(EndEarly(Of(0), noise_.Known(), 100000), 10);
}

// What stops because it is low has a mean that is too low: by less than a standard deviation of pairs.
TEST_F(Textbook, EndsWithAMeanThatIsLittleTooLow) {
  for (const double pair : {0.01, 0.02}) {
    noise_.pair = pair;
    double off = 0;
    int early = 0;
    for (int i = 0; i < 20000; ++i) {
      const v1::Comparison comparison = Protocol(Of(-0.1), noise_.Known());
      if (comparison.pairs() > kSurePairs) continue;
      off += comparison.mean_log_ratio() - std::log1p(-0.1);
      ++early;
    }
    ASSERT_GT(early, 2000);
    EXPECT_LT(off / early, 0);
    EXPECT_GT(off / early, -pair);
  }
}

// The noise must be able to fool a weaker rule, or the tests above say nothing: bounds from the spread of one process's
// pairs alone, as version 0.1.0 had them, contain a further process far less often than they say.
TEST_F(Textbook, FoolsBoundsThatIgnoreTheProcesses) {
  v1::ProcessNoise none;
  none.set_variance(1e-12);
  none.set_degrees(20);
  noise_.pair = 0.002;
  int covered = 0;
  for (int i = 0; i < 2000; ++i) {
    const PairBatch first = *noise_.Process(0, random_)(12);
    covered += Covers(Compare({&first, 1}, none, KeepRule()), Mean(noise_.Process(0, random_)(12)->log_ratios));
  }
  EXPECT_LT(covered, 1200);
}

// A goal over three sizes, of unequal weights.
class TextbookSizes : public Textbook {
 protected:
  // One process after another: the candidate gains so much at each size.
  SizedSourceStarter Of(std::vector<double> gains) {
    return [this, gains = std::move(gains)](int) -> absl::StatusOr<SizedSource> {
      std::vector<PairSource> sources;
      for (const double gain : gains) sources.push_back(noise_.Process(gain, random_));
      return SizedSource([sources = std::move(sources)](size_t size, int pairs) { return sources[size](pairs); });
    };
  }
  v1::Comparison Compared(const std::vector<double>& gains, double worst = 0) {
    return CompareSizesByProtocol(Of(gains), {.sizes = kSizes, .worst = worst, .whole = "a"}, noise_.Known(),
                                  KeepRule())
        .value();
  }
  int Keeps(const std::vector<double>& gains, int comparisons) {
    int keeps = 0;
    for (int i = 0; i < comparisons; ++i) keeps += Compared(gains).result() == v1::FASTER;
    return keeps;
  }
  double FurtherProcess(const std::vector<double>& gains) {
    double mean = 0;
    for (size_t i = 0; i < gains.size(); ++i) {
      mean += kSizes[i].weight * Mean(noise_.Process(gains[i], random_)(KeepRule().extended_pairs)->log_ratios);
    }
    return mean;
  }
  static inline const std::vector<SizeWeight> kSizes = {{"a", 0.5}, {"b", 0.3}, {"c", 0.2}};
};

TEST_F(TextbookSizes, KeepsNothingWhenAKernelIsComparedWithItself) { EXPECT_LE(Keeps({0, 0, 0}, 20000), 2); }

TEST_F(TextbookSizes, KeepsNothingWhoseGainsAndLossesCancelOut) {
  EXPECT_LE(Keeps({0.10, std::pow(1.1, -0.5 / 0.3) - 1, 0}, 20000), 2);
}

// The interval takes what a process adds at each size for independent. Where it is the same at all of them, nothing may
// be kept for that.
TEST_F(TextbookSizes, KeepsNothingWhereAProcessIsOffAlikeAtAllSizes) {
  TextbookNoise without = noise_;
  without.process = 0;
  std::normal_distribution<double> normal;
  const SizedSourceStarter start = [&](int) -> absl::StatusOr<SizedSource> {
    const double off = std::expm1(noise_.process * normal(random_));
    std::vector<PairSource> sources(kSizes.size());
    for (PairSource& source : sources) source = without.Process(off, random_);
    return SizedSource([sources = std::move(sources)](size_t size, int pairs) { return sources[size](pairs); });
  };
  int keeps = 0;
  for (int i = 0; i < 20000; ++i) {
    keeps += CompareSizesByProtocol(start, {.sizes = kSizes, .whole = "a"}, noise_.Known(), KeepRule())->result() ==
             v1::FASTER;
  }
  EXPECT_LE(keeps, 2);
}

TEST_F(TextbookSizes, KeepsATrueGainOfThreePercent) {
  EXPECT_GE(Keeps({0.03, 0.03, 0.03}, 2000), 1900);
  EXPECT_GE(Keeps({0.0, 0.0, std::pow(1.03, 5) - 1}, 2000), 1900) << "at the lightest size alone";
}

TEST_F(TextbookSizes, SeesASmallerGainThanAtOneSize) {
  const std::vector<double> gains(3, 0.022);
  EXPECT_GT(Keeps(gains, 1000), pawl::Keeps(Textbook::Of(0.022), noise_.Known(), 1000));
}

TEST_F(TextbookSizes, PrintsIntervalsThatContainAFurtherProcess) {
  for (const std::vector<double>& gains :
       {std::vector<double>{0, 0, 0}, {0.03, 0.03, 0.03}, {0.1, -0.05, 0.02}, {0.2, 0.3, 0.1}}) {
    int covered = 0;
    for (int i = 0; i < 10000; ++i) covered += Covers(Compared(gains), FurtherProcess(gains));
    EXPECT_GE(covered, 9850) << gains[0];
  }
}

TEST_F(TextbookSizes, StopsEarlyHardlyEverWhereItWouldHaveKept) {
  // A loss of 2 % at one size, which `worst` allows, and a gain in all.
  int keeps = 0;
  for (int i = 0; i < 2000; ++i) keeps += Compared({0.06, -0.02, 0.04}, /*worst=*/0.97).result() == v1::FASTER;
  EXPECT_GE(keeps, 1900);
}

// Series of the H200; the noise is what h200.toml says before a campaign has measured anything itself.
class H200Noise : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("PAWL_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    auto series = RecordedSeries::Load(std::string(root) + "/tests/profiles/series", 4);
    ASSERT_TRUE(series.ok()) << series.status();
    ASSERT_GE(series->comparisons().size(), 10u) << "too few comparisons to draw from";
    series_ = *std::move(series);
  }
  const RecordedSeries::Comparison& Any() { return series_.comparisons()[random_() % series_.comparisons().size()]; }
  int KeepsOf(double gain, int comparisons) {
    int keeps = 0;
    for (int i = 0; i < comparisons; ++i) {
      const RecordedSeries::Comparison& one = Any();
      keeps += Keeps([&] { return series_.Draw(one, gain, random_); }, NoiseOf("h200"), 1);
    }
    return keeps;
  }
  RecordedSeries series_;
  std::mt19937_64 random_{20254};
};

TEST_F(H200Noise, KeepsNothingWhenAKernelIsComparedWithItself) { EXPECT_LE(KeepsOf(0, 20000), 2); }

// Two sizes whose noise is that of any two comparisons.
class H200SizesNoise : public H200Noise {
 protected:
  int KeepsOfTwo(double gain, int comparisons) {
    int keeps = 0;
    for (int i = 0; i < comparisons; ++i) {
      const RecordedSeries::Comparison* sizes[] = {&Any(), &Any()};
      const auto start = [&](int) -> absl::StatusOr<SizedSource> {
        const PairSource sources[] = {series_.Draw(*sizes[0], gain, random_), series_.Draw(*sizes[1], gain, random_)};
        return SizedSource([first = sources[0], second = sources[1]](size_t size, int pairs) {
          return size == 0 ? first(pairs) : second(pairs);
        });
      };
      const SizesProtocol protocol{.sizes = {{"main", 0.6}, {"large", 0.4}}, .whole = "main"};
      keeps += CompareSizesByProtocol(start, protocol, NoiseOf("h200"), KeepRule())->result() == v1::FASTER;
    }
    return keeps;
  }
};

TEST_F(H200SizesNoise, KeepsNothingWhenAKernelIsComparedWithItself) { EXPECT_LE(KeepsOfTwo(0, 20000), 2); }

TEST_F(H200SizesNoise, KeepsATrueGainOfThreePercent) { EXPECT_GE(KeepsOfTwo(0.03, 2000), 1900); }

TEST_F(H200Noise, NeedsTwoPairsOfWhatIsMuchSlower) {
  for (const auto& [gain, least] : {std::pair{-0.1, 1000}, {-0.2, 1980}, {-0.5, 1990}}) {
    int early = 0;
    for (int i = 0; i < 2000; ++i) {
      const RecordedSeries::Comparison& one = Any();
      early += EndEarly([&, gain = gain] { return series_.Draw(one, gain, random_); }, NoiseOf("h200"), 1);
    }
    EXPECT_GE(early, least) << gain;
  }
}

TEST_F(H200Noise, PrintsIntervalsOfTwoPairsThatContainAFurtherProcess) {
  for (const double gain : {-0.1, -0.2}) {
    int covered = 0;
    for (int i = 0; i < 5000; ++i) {
      const RecordedSeries::Comparison& one = Any();
      const auto process = [&] { return series_.Draw(one, gain, random_); };
      covered += Covers(Protocol(process, NoiseOf("h200")), Mean(process()(Rule().extended_pairs)->log_ratios));
    }
    EXPECT_GE(covered, 4925) << gain;
  }
}

TEST_F(H200Noise, DoesNotEndEarlyWhereAKernelIsComparedWithItself) {
  for (const double gain : {0.0, 0.03}) {
    int early = 0;
    for (int i = 0; i < 20000; ++i) {
      const RecordedSeries::Comparison& one = Any();
      early += EndEarly([&] { return series_.Draw(one, gain, random_); }, NoiseOf("h200"), 1);
    }
    EXPECT_LE(early, 2) << gain;
  }
}

// Pairs are drawn from the middle of a process above. Its first ones are no lower than the others.
TEST_F(H200Noise, HasFirstPairsThatAreLikeTheOthers) {
  double off = 0;
  int processes = 0;
  for (const RecordedSeries::Comparison& comparison : series_.comparisons()) {
    for (const RecordedSeries::Process& process : comparison.processes) {
      const double mean = Mean(process.log_ratios);
      for (int i = 0; i < kSurePairs; ++i) {
        off += (process.log_ratios[static_cast<size_t>(i)] - mean) / kSurePairs;
        EXPECT_GT(process.log_ratios[static_cast<size_t>(i)] - mean, SureBelow(NoiseOf("h200"), Rule()));
      }
      ++processes;
    }
  }
  ASSERT_GT(processes, 40);
  EXPECT_NEAR(off / processes, 0, 0.003);
}

TEST_F(H200Noise, KeepsATrueGainOfThreePercent) { EXPECT_GE(KeepsOf(0.03, 2000), 1900); }

// The processes of a comparison in random order: the protocol takes as many as it wants, and the next one after them
// must lie in the interval.
TEST_F(H200Noise, PrintsIntervalsThatContainAFurtherProcess) {
  int covered = 0, all = 0;
  for (int i = 0; i < 20000; ++i) {
    std::vector<RecordedSeries::Process> processes = Any().processes;
    std::shuffle(processes.begin(), processes.end(), random_);
    size_t next = 0;
    const auto comparison = CompareByProtocol(
        [&](int) -> absl::StatusOr<PairSource> {
          if (next + 1 >= processes.size()) return absl::OutOfRangeError("none would be left");
          return PairSource([&pairs = processes[next++].log_ratios, at = size_t{0}](int count) mutable {
            PairBatch batch;
            for (int k = 0; k < count; ++k, ++at) batch.log_ratios.push_back(pairs[at % pairs.size()]);
            return batch;
          });
        },
        NoiseOf("h200"), KeepRule());
    if (!comparison.ok()) continue;
    ++all;
    covered += Covers(*comparison, Mean(processes[next].log_ratios));
  }
  ASSERT_GE(all, 10000);
  EXPECT_GE(covered, 0.985 * all);
}

}  // namespace
}  // namespace pawl
