#include "profiles/gpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiles/diagnosis.h"
#include "profiles/embedded.h"
#include "profiles/ncu/ncu_csv.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

std::string With(const std::string& from, const std::string& to) {
  std::string text(embedded::kGpusH200Toml);
  const size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& toml) {
  const auto gpu = ParseGpu(toml, "x");
  return gpu.ok() ? "no error" : std::string(gpu.status().message());
}

TEST(Gpus, SayOfTheH200WhatItsDriverSays) {
  const auto kernels = ReadNcuRaw(Golden("zoo_raw_small.csv"));
  ASSERT_TRUE(kernels.ok());
  const v1::GpuInfo real = GpuOf(kernels->front());
  const GpuSpec* gpu = FindGpu(real.name());
  ASSERT_NE(gpu, nullptr);
  EXPECT_EQ(gpu->file, "h200");
  EXPECT_EQ(gpu->info.sm_count(), real.sm_count());
  EXPECT_EQ(gpu->info.compute_major(), real.compute_major());
  EXPECT_EQ(gpu->info.compute_minor(), real.compute_minor());
  EXPECT_EQ(gpu->info.max_threads_per_sm(), real.max_threads_per_sm());
  EXPECT_EQ(gpu->info.max_threads_per_block(), real.max_threads_per_block());
  EXPECT_EQ(gpu->info.max_blocks_per_sm(), real.max_blocks_per_sm());
  EXPECT_EQ(gpu->info.registers_per_sm(), real.registers_per_sm());
  EXPECT_EQ(gpu->info.shared_per_sm(), real.shared_per_sm());
  EXPECT_EQ(gpu->info.shared_per_block_optin(), real.shared_per_block_optin());
  EXPECT_EQ(gpu->info.l2_bytes(), real.l2_bytes());
  EXPECT_EQ(gpu->info.max_sm_clock_mhz(), real.max_sm_clock_mhz());
  EXPECT_EQ(gpu->info.max_memory_clock_mhz(), real.max_memory_clock_mhz());
}

TEST(Gpus, AreFoundByDriverNameAndByFileName) {
  ASSERT_NE(FindGpu("nvidia l4"), nullptr);
  EXPECT_EQ(FindGpu("nvidia l4"), FindGpu("L4"));
  EXPECT_EQ(FindGpu("NVIDIA H2000"), nullptr);
  EXPECT_EQ(FindGpu(""), nullptr);
}

TEST(Gpus, HavePlausibleNumbers) {
  EXPECT_GE(KnownGpus().size(), 4u);
  for (const GpuSpec& gpu : KnownGpus()) {
    EXPECT_LT(gpu.info.shared_per_block_optin(), gpu.info.shared_per_sm()) << gpu.file;
    EXPECT_EQ(gpu.info.max_threads_per_sm() % 32, 0) << gpu.file;
    EXPECT_GT(gpu.l2_gb_s, gpu.dram_gb_s) << gpu.file;
    EXPECT_GT(gpu.fp16_tensor_tflops, gpu.fp32_tflops) << gpu.file;
    EXPECT_GT(gpu.price_per_hour, 0) << gpu.file;
  }
}

TEST(Gpus, OverrideOnlyThresholdsThatTheTreeHas) {
  for (const GpuSpec& gpu : KnownGpus()) {
    for (const auto& [name, metrics] : gpu.thresholds) {
      for (const auto& [metric, value] : metrics) {
        bool found = false;
        for (const Rule& rule : DecisionTree::Default().rules()) {
          for (const Condition& condition : rule.when) found |= rule.name == name && condition.metric == metric;
        }
        EXPECT_TRUE(found) << gpu.file << ": " << name << " " << metric;
      }
    }
  }
}

TEST(GpuFile, ReportsEveryMistakeAtOnceWithItsLine) {
  const std::string error = ErrorOf(
      "names = []\nprice_per_hour = -1\n\n[limits]\ncompute_capability = \"nine\"\nsm_count = 0\nmax_threads_per_sm = "
      "1.5\n"
      "cores = 7\n\n[thresholds]\nx = 3\n[thresholds.y]\nz = \"high\"\n");
  EXPECT_THAT(error, HasSubstr("profiles/gpus/x.toml:1: \"names\""));
  EXPECT_THAT(error, HasSubstr("x.toml:2: the price is below 0"));
  EXPECT_THAT(error, HasSubstr("x.toml:5: \"compute_capability\" must look like"));
  EXPECT_THAT(error, HasSubstr("x.toml:6: \"sm_count\" must be above 0"));
  EXPECT_THAT(error, HasSubstr("x.toml:7: \"max_threads_per_sm\" must be a whole number"));
  EXPECT_THAT(error, HasSubstr("x.toml:8: unknown key \"cores\""));
  EXPECT_THAT(error, HasSubstr("\"l2_bytes\" is missing"));
  EXPECT_THAT(error, HasSubstr("[peak] is missing"));
  EXPECT_THAT(error, HasSubstr("x.toml:11: thresholds are written"));
  EXPECT_THAT(error, HasSubstr("x.toml:13: \"z\" must be a number"));
}

TEST(GpuFile, RefusesNumbersThatDoNotFitAndTextThatIsNoToml) {
  EXPECT_THAT(ErrorOf(With("sm_count = 132", "sm_count = 13200000000")),
              HasSubstr("\"sm_count\" must be a whole number"));
  EXPECT_THAT(ErrorOf(With("sm_count = 132", "sm_count = nan")), HasSubstr("\"sm_count\" must be a number"));
  EXPECT_THAT(ErrorOf("[limits"), HasSubstr("x.toml:1:"));
}

}  // namespace
}  // namespace pawl
