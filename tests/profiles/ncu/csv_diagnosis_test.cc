#include "profiles/ncu/csv_diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/profiles/golden.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> Rules(const KernelDiagnosis& diagnosis) {
  std::vector<std::string> rules;
  for (const v1::Finding& finding : diagnosis.findings) rules.push_back(finding.rule());
  return rules;
}

std::vector<std::string> Silent(const KernelDiagnosis& diagnosis) {
  std::vector<std::string> rules;
  for (const RuleGap& gap : diagnosis.gaps) {
    if (!gap.found) rules.push_back(gap.rule);
  }
  return rules;
}

absl::StatusOr<std::vector<KernelDiagnosis>> Diagnosed(const std::string& raw, const std::string& kernel = "",
                                                       const char* gpu = nullptr, const std::string& details = "") {
  return DiagnoseCsv({.raw = raw, .details = details, .gpu = gpu ? FindGpu(gpu) : nullptr, .kernel = kernel},
                     ProfileSet::Default());
}

TEST(CsvDiagnosis, FindsThePlantedFaultsOfAWholeFile) {
  const auto diagnoses = Diagnosed(Golden("zoo_raw_full.csv"));
  ASSERT_TRUE(diagnoses.ok()) << diagnoses.status();
  ASSERT_EQ(diagnoses->size(), 11u);
  const KernelDiagnosis& tiny = diagnoses->front();
  EXPECT_THAT(tiny.launch.entry(), HasSubstr("tiny_grid("));
  EXPECT_EQ(tiny.gpu.name(), "NVIDIA H200");
  EXPECT_EQ(tiny.grid, "(2, 1, 1)");
  EXPECT_EQ(Rules(tiny).at(0), "grid-too-small");
}

// Warps that wait for atomics look like warps that wait for loads.
TEST(CsvDiagnosis, NamesAtomicsBeforeTheWaitsThatTheyCause) {
  for (const char* kernel : {"hist_global_few", "slots_global", "float_atomics"}) {
    const auto diagnoses = Diagnosed(Golden("faults_raw.csv"), kernel);
    ASSERT_TRUE(diagnoses.ok()) << diagnoses.status();
    EXPECT_EQ(Rules(diagnoses->front()).at(0), "atomics-contended") << kernel;
    EXPECT_THAT(Rules(diagnoses->front()), Not(Contains("latency-bound"))) << kernel;
  }
}

TEST(CsvDiagnosis, TakesInNcusAdvice) {
  const auto diagnoses = Diagnosed(Golden("zoo_raw_full.csv"), "divergent", nullptr, Golden("zoo_details_full.csv"));
  ASSERT_TRUE(diagnoses.ok()) << diagnoses.status();
  ASSERT_EQ(diagnoses->size(), 1u);
  EXPECT_GT(diagnoses->front().launch.advice_size(), 3);
  EXPECT_THAT(Rules(diagnoses->front()), Contains("unfused-arithmetic"));
  EXPECT_THAT(Silent(diagnoses->front()), Not(Contains("unfused-arithmetic")));
  const auto alone = Diagnosed(Golden("zoo_raw_full.csv"), "divergent");
  EXPECT_THAT(Silent(alone->front()), Contains("unfused-arithmetic"));
}

TEST(CsvDiagnosis, SaysWhichRulesAreSilentAndWhichColumnsWouldHelp) {
  const auto diagnoses = Diagnosed(Golden("zoo_raw_small.csv"), "copy_scalar");
  ASSERT_TRUE(diagnoses.ok()) << diagnoses.status();
  const KernelDiagnosis& copy = diagnoses->front();
  EXPECT_THAT(Silent(copy), AllOf(Contains("narrow-loads"), Contains("tensor-cores-idle"), Contains("divergence")));
  EXPECT_THAT(copy.missing_columns, Contains("smsp__thread_inst_executed_per_inst_executed.ratio"));
  EXPECT_THAT(copy.missing_columns, Not(Contains("launch__grid_size"))) << "it is in the file";
  EXPECT_EQ(copy.beyond_ncu, (std::vector<std::string>{"dram_excess", "local_bytes", "matrix_work"}));
  const auto full = Diagnosed(Golden("zoo_raw_full.csv"), "copy_scalar");
  EXPECT_THAT(Silent(full->front()), Not(Contains("narrow-loads")));
}

TEST(CsvDiagnosis, NeedsTheGpuOnlyWhereTheFileDoesNotNameIt) {
  const std::string nameless = absl::StrReplaceAll(Golden("zoo_raw_small.csv"),
                                                   {{"device__attribute_display_name", "device__attribute_no_name"}});
  EXPECT_EQ(Diagnosed(nameless)->front().gpu.name(), "");
  const auto told = Diagnosed(nameless, "copy_vec4", "h200");
  ASSERT_TRUE(told.ok()) << told.status();
  EXPECT_EQ(told->front().gpu.name(), "NVIDIA H200");
  EXPECT_THAT(Rules(told->front()), Contains("dram-roof")) << "by the H200's own threshold";
  EXPECT_THAT(Rules(Diagnosed(nameless, "copy_vec4")->front()), Not(Contains("dram-roof")));
  const auto wrong = Diagnosed(Golden("zoo_raw_small.csv"), "", "l4");
  EXPECT_EQ(wrong.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("made on a NVIDIA H200, not on a NVIDIA L4"));
}

TEST(CsvDiagnosis, UsesTheRulesItIsGiven) {
  ProfileSet profiles = ProfileSet::Default();
  profiles.tree = DecisionTree::Parse(
                      "[[rule]]\nname = \"mine\"\nphase = \"tuning\"\nwhen = [\"grid_size > 1\"]\nfinding = \"f\"\n"
                      "severity = \"1\"\nadvice = \"a\"\nsource = \"s\"\n",
                      "t.toml", profiles.metrics)
                      .value();
  const std::string raw = Golden("zoo_raw_small.csv");
  const auto diagnoses = DiagnoseCsv({.raw = raw, .details = {}, .gpu = nullptr, .kernel = "tiny_grid"}, profiles);
  EXPECT_EQ(Rules(diagnoses->front()), std::vector<std::string>{"mine"});
  EXPECT_TRUE(diagnoses->front().gaps.empty());
}

TEST(CsvDiagnosis, RefusesWhatIsNoRawPage) {
  EXPECT_THAT(std::string(Diagnosed("a,b\n1,2\n").status().message()), HasSubstr("not the output of `ncu --csv`"));
  EXPECT_FALSE(Diagnosed("").ok());
  EXPECT_THAT(std::string(Diagnosed(Golden("zoo_details_full.csv")).status().message()),
              HasSubstr("this is ncu's details page"));
  EXPECT_THAT(
      std::string(Diagnosed(Golden("zoo_raw_full.csv"), "", nullptr, Golden("zoo_raw_full.csv")).status().message()),
      HasSubstr("the details page: "));
  const auto absent = Diagnosed(Golden("zoo_raw_small.csv"), "matmul");
  EXPECT_EQ(absent.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(absent.status().message()),
              AllOf(HasSubstr("no kernel's name contains \"matmul\""), HasSubstr("tiny_grid(")));
}

}  // namespace
}  // namespace pawl
