// What commands show on a terminal of 80 columns, and in which colours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "cli/text/layout.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "tests/cli/some_iterations.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kColumns = 80;

class TerminalTest : public testing::Test {
 protected:
  TerminalTest() {
    fake_.iterations = SomeIterations();
    v1::Iteration& last = fake_.iterations[4];
    last.mutable_change()->set_variable("A_RATHER_LONG_NAME_OF_A_VARIABLE");
    last.set_reason("Faster, confirmed in a second process: +20.00 % (99 % bounds +19.00 % to +21.00 %, 7 pairs)");
    fake_.campaign.set_state(v1::RUNNING);
    fake_.campaign.set_tier(v1::SUCCESS_TIER_STRETCH);
    fake_.campaign.mutable_spec()->mutable_goal()->set_size("main");
    fake_.campaign.set_bundle("an_imported_bundle_with_a_long_name");
    fake_.campaign.set_device("replay of an NVIDIA H200, recorded on 2026-11-15");
    fake_.campaign.mutable_create_time()->set_seconds(1763215401);
    fake_.campaign.set_best(4);
    fake_.campaign.set_best_us(11.18);
    fake_.campaign.set_speedup_over_start(1.8);
    fake_.campaign.set_speedup_over_baseline(0.54);
  }

  std::string Shown(std::vector<std::string> arguments, const std::map<std::string, std::string>& env = {}) const {
    arguments.insert(arguments.end(), {"--orchestrator", fake_.address()});
    std::map<std::string, std::string> all = {{"HOME", home_.path().string()}, {"NO_COLOR", "1"}};
    for (const auto& [name, value] : env) all[name] = value;
    const ProcessResult result = PawlOnTerminal(arguments, kColumns, all);
    EXPECT_EQ(result.exit_code, 0) << result.out;
    return result.out;
  }

  FakeOrchestrator fake_;
  const TemporaryFolder home_{"pawl-home-"};
};

TEST_F(TerminalTest, HistoryCutsNeitherVerdictNorTimeNorBaseline) {
  const std::string shown = Shown({"history", "7"});
  EXPECT_THAT(shown, HasSubstr("#  verdict       time  baseline")) << shown;
  EXPECT_THAT(shown, HasSubstr("0  kept      20.12 us    0.300x")) << shown;
  EXPECT_THAT(shown, HasSubstr("4  kept      11.18 us    0.540x")) << shown;
  EXPECT_THAT(shown, HasSubstr("A_RATHER_LONG_NAME_OF_A_VARIABLE")) << shown;
  EXPECT_THAT(shown, HasSubstr("columns that do not fit this terminal: ")) << shown;
  for (const std::string& line : Lines(shown)) {
    if (absl::StrContains(line, " us ")) EXPECT_LE(DisplayWidth(line), kColumns) << line;
  }
}

TEST_F(TerminalTest, HistoryLeavesOutAReasonThatHasNoRoomBeforeASpeedup) {
  fake_.iterations[4].mutable_change()->set_variable("PIPELINE");
  const std::string shown = Shown({"history", "7"});
  EXPECT_THAT(shown, HasSubstr("  baseline  parent   start  change")) << shown;
  EXPECT_THAT(shown, Not(testing::ContainsRegex("change +reason"))) << shown;
  EXPECT_THAT(shown, HasSubstr("columns that do not fit this terminal: reason (")) << shown;
}

TEST_F(TerminalTest, CampaignsCutNeitherStateNorTimeNorBaseline) {
  const std::string shown = Shown({"campaigns"});
  EXPECT_THAT(shown, HasSubstr("#  state    tier         best  baseline  kernel")) << shown;
  EXPECT_THAT(shown, HasSubstr("7  running  stretch  11.18 us    0.540x  an_imported_bund")) << shown;
  for (const std::string& line : Lines(shown)) EXPECT_LE(DisplayWidth(line), kColumns) << line;
}

// The source is an agent's: ESC ] 0 sets a terminal's title, and what follows a NUL was not shown at all.
TEST_F(TerminalTest, DiffOfSourcesShowsAllOfThemWithoutControlCharacters) {
  fake_.campaign.set_bundle_hash("bundle");
  fake_.bundle.set_name("softmax");
  fake_.bundle.mutable_source()->set_path("softmax.cu");
  fake_.bundle.mutable_source()->set_text("int a;\n");
  const std::string nul(1, '\0');
  const std::string edited = "int a;\n\tint \x1b]0;owned\x07; // \xC2\x9B[31m" + nul + "hidden\n";
  fake_.blobs["edited"] = edited;
  fake_.iterations[1].set_patched_source_hash("edited");
  const std::string shown = Shown({"diff", "7", "0", "1", "--source"});
  EXPECT_THAT(shown, HasSubstr("+\tint ?]0;owned?; // ?[31m?hidden")) << shown;
  const ProcessResult piped =
      Pawl({"diff", "7", "0", "1", "--source", "--orchestrator", fake_.address()}, {{"HOME", home_.path().string()}});
  EXPECT_THAT(piped.out, HasSubstr(edited.substr(7))) << "a patch is as it is";
}

// A rejected start of a contract alone has files of its own.
TEST_F(TerminalTest, DiffOfSourcesComparesFilesByTheirPaths) {
  fake_.campaign.set_bundle_hash("bundle");
  fake_.bundle.set_name("softmax");
  fake_.bundle.mutable_source()->set_path("softmax.cu");
  fake_.bundle.mutable_source()->set_text("int a;\n");
  v1::Tensor& out = *fake_.bundle.add_tensors();
  out.set_name("out");
  out.set_type(v1::DATA_TYPE_F32);
  out.add_shape("32");
  out.set_role(v1::TENSOR_ROLE_OUTPUT);
  fake_.blobs["start"] =
      "==== first.cu, 1 lines ====\nint b;\n==== more.cuh, 1 lines ====\nint c;\n==== kernel.toml, 5 lines ====\n"
      "[[launch]]\nentry = \"first\"\ngrid = [\"1\"]\nblock = [\"32\"]\narguments = [\"out\"]\n";
  fake_.iterations[1].set_patched_source_hash("start");
  const std::string shown = Shown({"diff", "7", "0", "1", "--source"});
  EXPECT_THAT(shown, HasSubstr("--- a/softmax.cu")) << shown;
  EXPECT_THAT(shown, HasSubstr("+++ /dev/null")) << shown;
  EXPECT_THAT(shown, HasSubstr("+++ b/first.cu")) << shown;
  EXPECT_THAT(shown, HasSubstr("+++ b/more.cuh")) << shown;
  EXPECT_THAT(shown, HasSubstr("--- a/kernel.toml")) << shown;
}

TEST_F(TerminalTest, DiffCutsNoVerdictTimeOrBaseline) {
  v1::LaunchEvidence* launch = fake_.iterations[2].mutable_evidence()->add_launches();
  launch->set_entry("a_kernel_with_quite_a_long_name_that_takes_all_the_room_there_is");
  const std::string shown = Shown({"diff", "7", "1", "2"});
  EXPECT_THAT(shown, testing::ContainsRegex("  verdict +kept +reverted")) << shown;
  EXPECT_THAT(shown, testing::ContainsRegex("  time +13.41 us +13.69 us +1.02x")) << shown;
  EXPECT_THAT(shown, testing::ContainsRegex("  speedup over the baseline +0.450x +0.441x")) << shown;
  for (const std::string& line : Lines(shown)) EXPECT_LE(DisplayWidth(line), kColumns) << line;
}

TEST_F(TerminalTest, VerdictsAndStatesHaveOneColourEach) {
  const std::map<std::string, std::string> colors = {{"NO_COLOR", ""}};
  const std::string history = Shown({"history", "7"}, colors);
  EXPECT_THAT(history, HasSubstr("\x1b[32mkept\x1b[0m"));
  EXPECT_THAT(history, HasSubstr("\x1b[90mreverted\x1b[0m"));
  EXPECT_THAT(history, HasSubstr("\x1b[31mrejected\x1b[0m"));
  EXPECT_THAT(Shown({"campaigns"}, colors), HasSubstr("\x1b[34mrunning\x1b[0m"));
}

TEST_F(TerminalTest, NoColourIsShownWhereItIsNotWanted) {
  EXPECT_THAT(Shown({"history", "7"}, {{"NO_COLOR", "1"}}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Shown({"history", "7"}, {{"NO_COLOR", ""}, {"TERM", "dumb"}}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(Pawl({"history", "7", "--orchestrator", fake_.address()}, {{"TERM", "xterm"}}).out,
              Not(HasSubstr("\x1b")))
      << "a pipe";
}

TEST_F(TerminalTest, TimesCarryTheirZone) {
  const ProcessResult piped = Pawl({"campaigns", "--orchestrator", fake_.address()}, {{"TZ", "Asia/Tokyo"}});
  EXPECT_THAT(piped.out, HasSubstr("2025-11-15 14:03:21 UTC"));
}

}  // namespace
}  // namespace pawl
