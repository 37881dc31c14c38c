// Runs the built `pawl compare` as a user does, on the recordings that ship with Pawl.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "tests/cli/pawl_program.h"
#include "tests/kernels/bundle_folder.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

std::filesystem::path Source(const std::string& path) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / path;
}

const std::string kRecordings = Source("profiles/recordings").string();

ProcessResult Compare(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "compare");
  return Pawl(arguments);
}

ProcessResult Replayed(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--recordings", kRecordings});
  return Compare(std::move(arguments));
}

// A copy of a bundle, to be changed.
class Copy {
 public:
  explicit Copy(const std::filesystem::path& bundle) {
    std::filesystem::copy(bundle, path(), std::filesystem::copy_options::recursive);
  }
  std::string path() const { return (folder_.path() / "bundle").string(); }
  void Replace(const std::string& file, const std::string& from, const std::string& to) const {
    std::stringstream text;
    text << std::ifstream(folder_.path() / "bundle" / file).rdbuf();
    std::string changed = text.str();
    const size_t at = changed.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(folder_.path() / "bundle" / file) << changed.replace(at, from.size(), to);
  }

 private:
  const TemporaryFolder folder_{"pawl-compare-"};
};

std::string WriteFile(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

TEST(Compare, FindsAFasterVariantFasterWithBoundsAndCounters) {
  const ProcessResult result = Replayed({"attention", "TILE_M=16"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("attention on replay of an NVIDIA H200, recorded on "));
  EXPECT_THAT(result.out, HasSubstr("base       start: right"));
  EXPECT_THAT(result.out, HasSubstr("candidate  TILE_M=16: right"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("99 % interval"), HasSubstr("counters at main that differ")));
  EXPECT_THAT(result.out, EndsWith("\nfaster\n"));
}

TEST(Compare, SaysSlowerTheOtherWayRound) {
  const ProcessResult result = Replayed({"attention", "TILE_M=16", "TILE_M=64"});
  EXPECT_EQ(result.exit_code, 10) << result.out << result.err;
  EXPECT_THAT(result.out, EndsWith("\nslower\n"));
}

TEST(Compare, TakesSeveralAssignmentsAndPrintsOneJsonObject) {
  const ProcessResult result = Replayed({"attention", "TILE_M=16,KV_SPLITS=1", "KV_SPLITS=4,TILE_M=16", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << result.out;
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_EQ(json["base"]["variant"]["KV_SPLITS"], "1");
  EXPECT_EQ(json["candidate"]["variant"]["KV_SPLITS"], "4");
  EXPECT_TRUE(json["candidate"]["right"]);
  ASSERT_EQ(json["sizes"].size(), 1u);
  const nlohmann::json& at = json["sizes"][0];
  EXPECT_EQ(at["size"], "main");
  EXPECT_GT(at["low"].get<double>(), 1.01);
  EXPECT_LT(at["low"].get<double>(), at["speedup"].get<double>());
  EXPECT_LT(at["speedup"].get<double>(), at["high"].get<double>());
  EXPECT_GE(at["comparison"]["processes"].get<int>(), 2);
  EXPECT_FALSE(at["evidence"]["base"]["launches"].empty());
}

// Of the help's examples, those whose bundle ships with Pawl.
TEST(Compare, RunsTheExamplesOfItsHelp) {
  const ProcessResult help = Compare({"--help"});
  int run = 0;
  for (absl::string_view line : absl::StrSplit(help.out, '\n')) {
    const size_t begin = line.find("pawl compare attention ");
    if (begin == line.npos) continue;
    line.remove_prefix(begin);
    line = line.substr(0, line.find("  "));  // what it explains stands behind more blanks
    std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    words.erase(words.begin(), words.begin() + 2);
    const ProcessResult result = Replayed(words);
    EXPECT_EQ(result.exit_code, 0) << line << "\n" << result.err;
    ++run;
  }
  EXPECT_EQ(run, 2) << help.out;
}

TEST(Compare, RefusesUnknownVariablesAndValuesWithTheNearest) {
  ProcessResult result = Replayed({"attention", "TILE_N=16", "TILE_MM=16"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("\"16\" is not a value of TILE_N"), HasSubstr("64, 128, 256, 512")));
  result = Replayed({"attention", "TILE_MM=16"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no variable \"TILE_MM\""), HasSubstr("did you mean TILE_M?")));
  result = Replayed({"attention", "TILE_M=16", "--size", "mian"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("no size mian"), HasSubstr("did you mean main?")));
}

TEST(Compare, RefusesWhatAConstraintForbidsAndWhatIsTheSame) {
  ProcessResult result = Compare({BundleFolder::Golden().string(), "SPLITS=2,TILE=128"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("constraint SPLITS == 1 || TILE <= 64 forbids"));
  result = Compare({BundleFolder::Golden().string(), "TILE=64"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("start and TILE=64 are the same"));
}

TEST(Compare, ExpectsOneComparison) {
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"attention"},
                                                {"attention", "TILE_M=16", "softmax"},
                                                {"attention", "softmax", "gemm"}}) {
    const ProcessResult result = Replayed(wrong);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("expected one comparison: BUNDLE --patch FILE"));
  }
}

TEST(Compare, RefusesBundlesOfAnotherContractWithTheFirstFieldThatDiffers) {
  const Copy copy(BundleFolder::Golden());
  copy.Replace("kernel.toml", "COLS = 4096", "COLS = 2048");
  const ProcessResult result = Compare({BundleFolder::Golden().string(), copy.path()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the bundles do not promise the same: [[size]] main COLS is 4096 in "),
                                HasSubstr("fix: make the contracts equal")));
}

TEST(Compare, TakesBundlesThatDifferInTheirGoalAlone) {
  const Copy copy(BundleFolder::Golden());
  copy.Replace("kernel.toml", "speedup = 1.5", "speedup = 3");
  const ProcessResult result = Compare({BundleFolder::Golden().string(), copy.path()});
  EXPECT_THAT(result.err, Not(HasSubstr("do not promise the same")));
}

TEST(Compare, RefusesAPatchThatDoesNotApplyOrTouchesTheContract) {
  const TemporaryFolder folder("pawl-compare-");
  const std::string bundle = BundleFolder::Golden().string();
  const std::string stale = WriteFile(folder.path() / "stale.patch",
                                      "--- a/scale_rows.cu\n+++ b/scale_rows.cu\n@@ -1,1 +1,1 @@\n-nowhere\n+here\n");
  ProcessResult result = Compare({bundle, "--patch", stale});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("stale.patch: hunk 1 of the patch does not fit scale_rows.cu"),
                                HasSubstr("fix: make the patch against the files of the implementation")));
  const std::string contract = WriteFile(folder.path() / "contract.patch",
                                         "--- a/reference.cu\n+++ b/reference.cu\n@@ -1,1 +1,1 @@\n-nowhere\n+here\n");
  result = Compare({bundle, "--patch", contract});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("it edits reference.cu"), HasSubstr("fix: ")));
  result = Compare({bundle, "--patch", (folder.path() / "none.patch").string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("none.patch: No such file"));
}

TEST(Compare, SaysWhatToDoWhereARecordingHasNoTimes) {
  // No GPU and no recording: of an edited source, of another bundle, at another size.
  const Copy copy(Source("kernels/attention"));
  copy.Replace("attention.cu", "\n", "\n// edited\n");
  ProcessResult result = Replayed({Source("kernels/attention").string(), copy.path()});
  EXPECT_EQ(result.exit_code, 4) << result.out;
  EXPECT_THAT(result.err, AllOf(HasSubstr("no times of edited sources"), HasSubstr("fix: run this on a machine with")));
  result = Replayed({BundleFolder::Golden().string(), "TILE=32"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("there is no recording of this version of scale_rows at size main"));
  result = Replayed({"attention", "TILE_M=16", "--all-sizes"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("at size tiny"));
}

}  // namespace
}  // namespace pawl
