// What `pawl` says of itself: help, versions, completion, man pages; and flags before and after the command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands/commands.h"
#include "cli/output/help_files.h"
#include "cli/text/layout.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/pawl_program.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class HelpTest : public testing::Test {
 protected:
  int exit_code_ = 0;
  const std::unique_ptr<CLI::App> app_ = MakePawlApp("1.2.3", &exit_code_);
};

TEST_F(HelpTest, NamesTheConnectionFlagsInOneLineOfEachCommand) {
  for (const CLI::App* command : app_->get_subcommands({})) {
    if (command->get_option_no_throw("--orchestrator") == nullptr) continue;
    const std::string help = command->help("pawl");
    EXPECT_THAT(Lines(help), Contains(HasSubstr("pawl help connection")).Times(1)) << help;
    for (const char* flag : {"--tls-ca", "--tls-cert", "--tls-key", "--token-file", "--config"}) {
      EXPECT_THAT(help, Not(HasSubstr(flag))) << command->get_name();
    }
  }
  const ProcessResult connection = Pawl({"help", "connection"});
  EXPECT_EQ(connection.exit_code, 0);
  for (const char* flag :
       {"--orchestrator", "--database", "--config", "--tls-ca", "--tls-cert", "--tls-key", "--token-file"}) {
    EXPECT_THAT(connection.out, HasSubstr(absl::StrCat("  ", flag, " "))) << connection.out;
  }
}

// Lines fit 80 columns, and nothing in them is CLI11's own.
void ExpectReadable(const std::string& help) {
  for (const std::string& line : Lines(help)) {
    EXPECT_LE(DisplayWidth(line), 80) << line;
    for (const char* raw : {" INT", " UINT", " FLOAT", "TEXT:", "(Env:", " REQUIRED", "(0x)", "(2x)", "Positionals"}) {
      EXPECT_THAT(line, Not(HasSubstr(raw)));
    }
  }
}

TEST_F(HelpTest, IsReadableForEveryCommand) {
  for (const CLI::App* command : app_->get_subcommands({})) ExpectReadable(command->help("pawl"));
  EXPECT_THAT(app_->get_subcommand("compare")->help("pawl"), HasSubstr(" BUNDLE [OTHER...]\n"));
}

TEST_F(HelpTest, IsReadableForEveryDaemon) {
  const std::vector<std::vector<std::string>> daemons = {
      {"pawl-orchestrator"}, {"pawl-worker"}, {"pawl-fleet"}, {"pawl-fleet", "slurm"}};
  for (const std::vector<std::string>& daemon : daemons) {
    ProcessOptions options;
    options.argv = daemon;
    options.argv[0] = BuiltProgram(daemon[0]);
    options.argv.push_back("--help");
    const absl::StatusOr<ProcessResult> result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << daemon[0];
    EXPECT_THAT(result->out, HasSubstr("Usage: " + daemon[0]));
    ExpectReadable(result->out);
  }
}

TEST_F(HelpTest, OfACommandIsTheSameBothWays) {
  const ProcessResult flag = Pawl({"history", "--help"}), topic = Pawl({"help", "history"});
  EXPECT_EQ(topic.exit_code, 0);
  EXPECT_EQ(topic.out, flag.out);
  EXPECT_EQ(Pawl({"help"}).out, Pawl({"--help"}).out);
  const ProcessResult unknown = Pawl({"help", "histroy"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean history?"));
}

TEST_F(HelpTest, EveryProgramNamesItselfWithItsVersion) {
  std::string version = Pawl({"--version"}).out;
  ASSERT_TRUE(absl::StartsWith(version, "pawl "));
  version = version.substr(5);
  for (const char* name : {"pawl-orchestrator", "pawl-worker", "pawl-builder", "pawl-runner", "pawl-sandbox"}) {
    ProcessOptions options;
    options.argv = {BuiltProgram(name), "--version"};
    const absl::StatusOr<ProcessResult> result = RunProcess(options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->exit_code, 0) << name;
    EXPECT_EQ(result->out, absl::StrCat(name, " ", version));
  }
}

TEST(GlobalFlagsTest, MoveBehindTheCommand) {
  EXPECT_THAT(WithCommandFirst({"--database", "x.db", "--json", "history", "1"}),
              ElementsAre("history", "--database", "x.db", "--json", "1"));
  EXPECT_THAT(WithCommandFirst({"--database=x.db", "history", "1"}), ElementsAre("history", "--database=x.db", "1"));
  EXPECT_THAT(WithCommandFirst({"history", "1", "--database", "x.db"}),
              ElementsAre("history", "1", "--database", "x.db"));
  EXPECT_THAT(WithCommandFirst({"--help"}), ElementsAre("--help"));
  EXPECT_THAT(WithCommandFirst({"--database", "x.db"}), ElementsAre("--database", "x.db"));
}

TEST(GlobalFlagsTest, CountBeforeAndAfterTheCommand) {
  FakeOrchestrator fake;
  const ProcessResult before = Pawl({"--orchestrator", fake.address(), "--json", "show", "7"});
  const ProcessResult after = Pawl({"show", "7", "--json", "--orchestrator", fake.address()});
  EXPECT_EQ(before.exit_code, 0) << before.err;
  EXPECT_EQ(before.out, after.out);
  EXPECT_EQ(Pawl({"--json", "completion", "bash"}).exit_code, 2) << "a command without the flag refuses it";
}

// What bash proposes for the last of these words.
std::vector<std::string> Completed(const std::string& script, const std::vector<std::string>& words,
                                   const std::string& folder) {
  std::ofstream(folder + "/completion") << script;
  ProcessOptions options;
  options.argv = {
      "/bin/bash", "-c",
      absl::StrCat(
          "cd ", folder, " && . ./completion && COMP_WORDS=(pawl ",
          absl::StrJoin(words, " ",
                        [](std::string* out, const std::string& word) { absl::StrAppend(out, "'", word, "'"); }),
          ") COMP_CWORD=", words.size(), " && _pawl 2>/dev/null; printf '%s\\n' \"${COMPREPLY[@]}\"")};
  const absl::StatusOr<ProcessResult> result = RunProcess(options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? Lines(result->out) : std::vector<std::string>();
}

TEST_F(HelpTest, BashCompletesCommandsFlagsValuesAndFiles) {
  const TemporaryFolder folder("pawl-completion-");
  std::ofstream(folder.path() / "pawl.db") << "x";
  const auto completed = [&](const std::vector<std::string>& words) {
    return Completed(BashCompletion(*app_), words, folder.path().string());
  };
  EXPECT_THAT(completed({""}), IsSupersetOf(CommandNames(*app_)));
  EXPECT_THAT(completed({"hist"}), ElementsAre("history"));
  EXPECT_THAT(completed({"history", "1", "--verd"}), ElementsAre("--verdict"));
  EXPECT_THAT(completed({"history", "1", "--verdict", "re"}), ElementsAre("reverted", "rejected"));
  EXPECT_THAT(completed({"history", "1", "--tls-c"}), ElementsAre("--tls-ca", "--tls-cert"));
  EXPECT_THAT(completed({"--database", "pawl"}), ElementsAre("pawl.db"));
  EXPECT_THAT(completed({"--database", "pawl.db", "hist"}), ElementsAre("history"));
  EXPECT_THAT(completed({"completion", "f"}), ElementsAre("fish"));
  EXPECT_THAT(completed({"run", "paw"}), ElementsAre("pawl.db"));
  EXPECT_THAT(completed({"run", "--device", "rep"}), ElementsAre("replay"));
}

TEST_F(HelpTest, EveryShellKnowsEveryCommandAndFlag) {
  const std::string bash = Pawl({"completion", "bash"}).out, zsh = Pawl({"completion", "zsh"}).out,
                    fish = Pawl({"completion", "fish"}).out;
  for (const CLI::App* command : app_->get_subcommands({})) {
    EXPECT_THAT(bash, HasSubstr(absl::StrCat("    '", command->get_name(), "') ")));
    EXPECT_THAT(zsh, HasSubstr(absl::StrCat("    '", command->get_name(), ":")));
    EXPECT_THAT(fish, HasSubstr(absl::StrCat(" -a ", command->get_name(), " -d ")));
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string flag = option->get_lnames()[0];
      EXPECT_THAT(bash, HasSubstr(absl::StrCat("--", flag)));
      EXPECT_THAT(zsh, HasSubstr(absl::StrCat("'--", flag, "[")));
      EXPECT_THAT(fish, HasSubstr(absl::StrCat("__fish_seen_subcommand_from ", command->get_name(), "' -l ", flag)));
    }
  }
  EXPECT_EQ(Pawl({"completion", "csh"}).exit_code, 2);
}

TEST_F(HelpTest, ManPagesAreThereForEveryCommand) {
  const TemporaryFolder folder("pawl-man-");
  const ProcessResult written = Pawl({"help", "--man", (folder.path() / "man1").string()});
  ASSERT_EQ(written.exit_code, 0) << written.err;
  std::vector<std::string> names = {"pawl"};
  for (const std::string& command : CommandNames(*app_)) names.push_back("pawl-" + command);
  for (const std::string& name : names) {
    std::ifstream file(folder.path() / "man1" / (name + ".1"));
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_THAT(text.str(), HasSubstr(".SH NAME")) << name;
    EXPECT_THAT(text.str(), HasSubstr(".SH SYNOPSIS\npawl")) << name;
    for (const std::string& line : Lines(text.str())) {
      EXPECT_FALSE(absl::StartsWith(line, "'")) << name << " has a line that roff takes for a request: " << line;
    }
  }
  for (const ManPage& page : ManPages(*app_, "1.2.3")) EXPECT_THAT(page.text, HasSubstr("\"pawl 1.2.3\""));
}

}  // namespace
}  // namespace pawl
