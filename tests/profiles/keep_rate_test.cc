// How often the keep rule is wrong, through the code that decides in the product.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/profiles/recorded_series.h"
#include "tests/profiles/textbook_noise.h"

namespace pawl {
namespace {

template <typename Noise>
int Keeps(const Noise& noise, double gain, int comparisons, std::mt19937_64& random) {
  int keeps = 0;
  for (int i = 0; i < comparisons; ++i) {
    const auto result = CompareByProtocol([&] { return noise.Process(gain, random); }, KeepRule());
    keeps += result.ok() && result->result() == v1::FASTER;
  }
  return keeps;
}

TEST(TextbookNoise, KeepsNothingWhenAKernelIsComparedWithItself) {
  std::mt19937_64 random(20251);
  EXPECT_LE(Keeps(TextbookNoise(), 0, 20000, random), 2);
}

TEST(TextbookNoise, KeepsATrueGainOfThreePercent) {
  std::mt19937_64 random(20252);
  EXPECT_GE(Keeps(TextbookNoise(), 0.03, 2000, random), 1900);
}

// The noise must be able to fool a weaker rule, or the tests above say nothing: a 99 % bound above 0 in one process is
// wrong about once in a hundred.
TEST(TextbookNoise, FoolsARuleWithoutAMinimumGain) {
  std::mt19937_64 random(20253);
  KeepRule weak;
  weak.min_gain = 0;
  int keeps = 0;
  for (int i = 0; i < 20000; ++i) {
    PairSource process = TextbookNoise().Process(0, random);
    keeps += Compare(process(weak.first_pairs)->log_ratios, 0, weak).result() == v1::FASTER;
  }
  EXPECT_GE(keeps, 60);
  EXPECT_LE(keeps, 400);
}

class H200Noise : public testing::Test {
 protected:
  void SetUp() override {
    const char* root = std::getenv("PAWL_SOURCE_DIR");
    ASSERT_NE(root, nullptr);
    auto series = RecordedSeries::Load(std::string(root) + "/tests/profiles/golden/self_comparison_h200.json.gz");
    ASSERT_TRUE(series.ok()) << series.status();
    ASSERT_GE(series->comparisons(), 20u) << "too few processes to draw from";
    series_ = *std::move(series);
  }
  RecordedSeries series_;
};

TEST_F(H200Noise, KeepsNothingWhenAKernelIsComparedWithItself) {
  std::mt19937_64 random(20254);
  EXPECT_LE(Keeps(series_, 0, 20000, random), 2);
}

TEST_F(H200Noise, KeepsATrueGainOfThreePercent) {
  std::mt19937_64 random(20255);
  EXPECT_GE(Keeps(series_, 0.03, 2000, random), 1900);
}

}  // namespace
}  // namespace pawl
