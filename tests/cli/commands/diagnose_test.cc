// Runs the built `pawl diagnose` as a user does, over real files of ncu.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/pawl_program.h"
#include "tests/kernels/bundle_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Zoo(const std::string& file) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::string(source == nullptr ? "." : source) + "/tests/profiles/golden/ncu-h200/" + file;
}

std::string Slurp(const std::string& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(DiagnoseTest, TellsFindingsWithValuesThresholdsAndAdvice) {
  const ProcessResult result = Pawl({"diagnose", Zoo("zoo_raw_full.csv"), "--kernel", "transpose_conflict"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("transpose_conflict(const float *, float *, int): grid (256, 256, 1)"),
                                HasSubstr("NVIDIA H200"), HasSubstr("bank-conflicts (memory)"),
                                HasSubstr("bank_conflict_share 92.53 > 30"), HasSubstr("bank_spread+"),
                                HasSubstr("Pad the rows of the tile")));
  EXPECT_THAT(result.out, Not(HasSubstr("transpose_padded")));
  EXPECT_THAT(result.out, HasSubstr("not evaluated tensor-cores-idle: missing matrix_work"));
  EXPECT_EQ(result.err, "");
}

TEST(DiagnoseTest, TellsEveryKernelOfAFile) {
  const ProcessResult result = Pawl({"diagnose", Zoo("zoo_raw_small.csv")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* kernel : {"tiny_grid(", "uncoalesced(", "copy_vec4(", "spilling("}) {
    EXPECT_THAT(result.out, testing::AnyOf(HasSubstr(std::string("\n") + kernel), testing::StartsWith(kernel)))
        << kernel;
  }
  EXPECT_THAT(result.out, HasSubstr("at a limit of the GPU (dram-roof): further tuning is unlikely to help"));
  EXPECT_THAT(result.out, HasSubstr("smsp__issue_active.avg.pct_of_peak_sustained_active")) << "what to ask ncu for";
}

TEST(DiagnoseTest, ReadsStandardInput) {
  ProcessOptions options;
  options.argv = {BuiltProgram("pawl"), "diagnose", "-", "--kernel", "tiny_grid"};
  options.input = Slurp(Zoo("zoo_raw_small_logfile.csv"));
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->exit_code, 0) << result->err;
  EXPECT_THAT(result->out, HasSubstr("2 blocks for 132 SMs"));
}

TEST(DiagnoseTest, PrintsAJsonObjectAKernel) {
  const ProcessResult result =
      Pawl({"diagnose", Zoo("zoo_raw_full.csv"), "--details", Zoo("zoo_details_full.csv"), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::vector<std::string> lines = Lines(result.out);
  ASSERT_EQ(lines.size(), 11u);
  const nlohmann::json tiny = nlohmann::json::parse(lines[0], nullptr, false);
  ASSERT_TRUE(tiny.is_object()) << lines[0];
  EXPECT_EQ(tiny["gpu"], "NVIDIA H200");
  EXPECT_EQ(tiny["findings"][0]["rule"], "grid-too-small");
  EXPECT_EQ(tiny["findings"][0]["ncuRule"], "LaunchConfiguration");
  EXPECT_EQ(tiny["findings"][0]["seen"][0]["threshold"], 1);
  EXPECT_EQ(tiny["launch"]["metrics"]["grid_size"], 2);
  EXPECT_GT(tiny["launch"]["advice"].size(), 3u);
  EXPECT_FALSE(tiny["gaps"].empty());
}

TEST(DiagnoseTest, TakesRulesFromAFolder) {
  BundleFolder folder;
  folder.Write(
      "decision_tree.toml",
      "[[rule]]\nname = \"mine\"\nphase = \"tuning\"\nwhen = [\"grid_size > 1\"]\nfinding = \"{grid_size} blocks\"\n"
      "severity = \"1\"\nadvice = \"none\"\nsource = \"me\"\n");
  const ProcessResult result =
      Pawl({"diagnose", Zoo("zoo_raw_small.csv"), "--kernel", "tiny_grid", "--profiles", folder.path()});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("mine (tuning)"), HasSubstr("2 blocks"), Not(HasSubstr("grid-too-small"))));
  folder.Write("decision_tree.toml", "[[rule]]\nname = \"mine\"\nphase = \"lunch\"\n");
  const ProcessResult wrong = Pawl({"diagnose", Zoo("zoo_raw_small.csv"), "--profiles", folder.path()});
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("decision_tree.toml:3: rule mine: unknown phase \"lunch\""));
}

TEST(DiagnoseTest, SaysHowToMakeTheFileWhereItIsNone) {
  BundleFolder folder;
  folder.Write("other.csv", "a,b\n1,2\n");
  const ProcessResult other = Pawl({"diagnose", folder.path() / "other.csv"});
  EXPECT_EQ(other.exit_code, 1);
  EXPECT_EQ(other.out, "");
  EXPECT_THAT(other.err, AllOf(HasSubstr("other.csv: "), HasSubstr("not the output of `ncu --csv`"),
                               HasSubstr("fix: ncu --set full --csv --page raw --print-units base")));
  const ProcessResult details = Pawl({"diagnose", Zoo("zoo_details_full.csv")});
  EXPECT_EQ(details.exit_code, 1);
  EXPECT_THAT(details.err, HasSubstr("this is ncu's details page"));
  for (const std::string missing : {std::string("nosuch.csv"), folder.path().string()}) {
    const ProcessResult result = Pawl({"diagnose", missing});
    EXPECT_EQ(result.exit_code, 1) << missing;
    EXPECT_THAT(result.err, HasSubstr(missing + ": "));
  }
}

TEST(DiagnoseTest, AnswersWrongUsageWithTwo) {
  EXPECT_EQ(Pawl({"diagnose"}).exit_code, 2);
  const ProcessResult gpu = Pawl({"diagnose", Zoo("zoo_raw_small.csv"), "--gpu", "h2000"});
  EXPECT_EQ(gpu.exit_code, 2);
  EXPECT_THAT(gpu.err, HasSubstr("unknown GPU h2000; expected a100"));
  EXPECT_THAT(Pawl({"diagnose", "--help"}).out, HasSubstr("Example: pawl diagnose"));
}

TEST(DiagnoseTest, RefusesAKernelOrAGpuThatTheFileDoesNotHave) {
  const ProcessResult kernel = Pawl({"diagnose", Zoo("zoo_raw_small.csv"), "--kernel", "matmul"});
  EXPECT_EQ(kernel.exit_code, 1);
  EXPECT_THAT(kernel.err, AllOf(HasSubstr("no kernel's name contains \"matmul\""), Not(HasSubstr("fix:"))));
  const ProcessResult gpu = Pawl({"diagnose", Zoo("zoo_raw_small.csv"), "--gpu", "l4"});
  EXPECT_EQ(gpu.exit_code, 1);
  EXPECT_THAT(gpu.err, HasSubstr("made on a NVIDIA H200, not on a NVIDIA L4"));
}

}  // namespace
}  // namespace pawl
