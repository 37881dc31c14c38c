// How often the keep rule is wrong, through the code that decides in the product.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "profiles/gpus.h"
#include "tests/profiles/recorded_series.h"
#include "tests/profiles/textbook_noise.h"

namespace pawl {
namespace {

// One process after another of the same comparison.
using Processes = std::function<PairSource()>;

v1::Comparison Protocol(const Processes& processes, const v1::ProcessNoise& noise) {
  return CompareByProtocol([&](int) { return processes(); }, noise, KeepRule()).value();
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
  for (const double gain : {-0.02, 0.0, 0.015, 0.03, 0.2}) {
    const double share = Coverage(gain, 20000);
    EXPECT_GE(share, 0.985) << gain;
    EXPECT_LE(share, 1.0) << gain;
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
