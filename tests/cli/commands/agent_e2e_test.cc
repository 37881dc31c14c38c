// `pawl agent` with agents that follow a script, on a replayed campaign.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/mcp/json.h"
#include "tests/cli/pawl_program.h"
#include "tests/instrumented.h"
#include "worker/process/spawn.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

class AgentTest : public testing::Test {
 protected:
  void SetUp() override {
    if (system("python3 -c 1 > /dev/null 2>&1") != 0) GTEST_SKIP() << "no python3";
    // An orchestrator for the length of the test, with a campaign that waits for proposals.
    orchestrator_ = Start({BuiltProgram("pawl-orchestrator"), "--listen", address_, "--database", Path("pawl.db")});
    worker_ = Start({BuiltProgram("pawl-worker"), "--orchestrator", address_, "--device", "replay"});
    for (int i = 0; i < 500 && !std::filesystem::exists(Path("socket")); ++i) absl::SleepFor(absl::Milliseconds(20));
    const ProcessResult submitted = Pawl({"submit", "softmax", "--chooser", "outside", "--wait-for-proposal", "1000",
                                          "--goal", "1000", "--iterations", "1000", "--orchestrator", address_});
    ASSERT_EQ(submitted.exit_code, 0) << submitted.err;
  }
  void TearDown() override {
    for (const pid_t pid : {orchestrator_, worker_}) {
      if (pid <= 0) continue;
      kill(pid, SIGKILL);
      Reap(pid);
    }
  }

  static pid_t Start(const std::vector<std::string>& argv) {
    SpawnOptions options;
    options.argv = argv;
    const Fd nothing(open("/dev/null", O_RDWR | O_CLOEXEC));
    options.fds = {{nothing.get(), 0}, {nothing.get(), 1}, {nothing.get(), 2}};
    return Spawn(options).value();
  }
  std::string Path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string Text(const std::string& name) const {
    std::ifstream in(Path(name));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::string Agent(const std::string& words) {
    return absl::StrCat(getenv("PAWL_SOURCE_DIR"), "/tests/cli/commands/scripted_agent.py ", words);
  }
  std::vector<std::string> Words(const std::string& words, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {"agent",     "1",      "--command",      Agent(words), "--folder",
                                    Path("run"), "--json", "--orchestrator", address_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  // What it prints at its end.
  Json Run(const std::string& words, const std::vector<std::string>& more = {}, int failure = 0,
           const std::map<std::string, std::string>& env = {}) {
    const absl::Time begun = absl::Now();
    const ProcessResult result = Pawl(Words(words, more), env);
    took_ = absl::Now() - begun;
    const Json json = Json::parse(result.out, nullptr, false);
    EXPECT_TRUE(json.is_object()) << result.out << result.err;
    const int success = json.is_object() && json["kept"] > 0 ? 0 : 3;
    EXPECT_EQ(result.exit_code, failure != 0 ? failure : success)
        << result.out << result.err << Text("run/agent-1.err");
    return json;
  }

  const TemporaryFolder folder_{"pawl-agents-"};
  const std::string address_ = absl::StrCat("unix:", Path("socket"));
  pid_t orchestrator_ = 0, worker_ = 0;
  absl::Duration took_;  // the last run
};

TEST_F(AgentTest, DrivesACampaignUntilTheProposalsAreUsedUp) {
  const Json result = Run("all", {"--proposals", "6"});
  EXPECT_EQ(result["stopReason"], "proposals");
  EXPECT_EQ(result["agents"][0]["proposals"], 6);
  EXPECT_EQ(result["agents"][0]["judged"], 6);
  EXPECT_GT(result["kept"].get<int>(), 0);
  EXPECT_LT(result["timeUs"].get<double>(), result["timeUsBefore"].get<double>());
  EXPECT_GT(result["agents"][0]["tokens"].get<int>(), 0);
  EXPECT_THAT(Text("run/agent-1.out"), HasSubstr("all 6 proposals are used up"));
  EXPECT_THAT(Text("run/agent-1.calls.jsonl"), HasSubstr("\"tool\":\"wait\""));
  EXPECT_THAT(Text("run/agent-1/implementation/softmax.cu"), HasSubstr("__global__"));
  EXPECT_EQ(Json::parse(Text("run/result.json")), result);
  const ProcessResult history = Pawl({"history", "1", "--json", "--orchestrator", address_});
  EXPECT_THAT(history.out, HasSubstr(absl::StrCat("\"author\":\"", result["agents"][0]["author"].get<std::string>())));
}

TEST_F(AgentTest, PrintsWhatCameOfItWhereItCanNotBeWritten) {
  std::filesystem::create_directories(Path("run/result.json"));  // no file can be there
  const Json result = Run("look", {}, /*failure=*/1);
  EXPECT_EQ(result["stopReason"], "agentsEnded");
}

TEST_F(AgentTest, LetsSeveralWorkSideBySideWithoutDuplicates) {
  const Json result = Run("all", {"--agents", "3", "--proposals", "9"});
  EXPECT_EQ(result["stopReason"], "proposals");
  int proposals = 0;
  for (const Json& agent : result["agents"]) proposals += agent["proposals"].get<int>();
  EXPECT_EQ(proposals, 9);
  const ProcessResult history = Pawl({"history", "1", "--json", "--orchestrator", address_});
  std::set<std::string> variants;
  for (const std::string& line : Lines(history.out)) {
    EXPECT_TRUE(variants.insert(JsonText(Json::parse(line)["variant"])).second) << "tried twice: " << line;
  }
}

// Each on a campaign of its own: on a busy machine an agent may be some proposals past a limit before it is stopped.
TEST_F(AgentTest, StopsAtTheLimitOfTokens) { EXPECT_EQ(Run("all", {"--tokens", "300"})["stopReason"], "tokens"); }

TEST_F(AgentTest, StopsAtTheLimitOfMinutes) { EXPECT_EQ(Run("hang", {"--minutes", "0.02"})["stopReason"], "minutes"); }

TEST_F(AgentTest, StopsAfterTooManyWithoutKeep) {
  EXPECT_EQ(Run("all", {"--without-keep", "3"})["stopReason"], "withoutKeep");
}

TEST_F(AgentTest, EndsAnAgentThatCallsNoToolAndKeepsTheTranscript) {
  const Json result = Run("say hello hang", {"--idle-minutes", "0.02"});
  EXPECT_EQ(result["stopReason"], "agentsEnded");
  EXPECT_EQ(result["agents"][0]["idle"], true);
  EXPECT_EQ(Text("run/agent-1.out"), "hello\n");
}

TEST_F(AgentTest, SaysThatAnAgentFailed) {
  const Json result = Run("fail", {}, 1);
  EXPECT_EQ(result["stopReason"], "failed");
  EXPECT_EQ(result["agents"][0]["end"], "exited with code 7");
  const ProcessResult missing = Pawl(
      {"agent", "1", "--command", "no-such-agent", "--json", "--folder", Path("run2"), "--orchestrator", address_});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(Text("run2/agent-1.err"), HasSubstr("no-such-agent"));
  EXPECT_EQ(Pawl({"agent", "1", "--command", "'", "--orchestrator", address_, "--folder", Path("run3")}).exit_code, 1);
  EXPECT_EQ(Pawl({"agent", "99", "--command", "codex", "--orchestrator", address_}).exit_code, 1);
}

TEST_F(AgentTest, CallsItAFailureThatAnAgentFoundNoTool) {
  const Json result = Run("say done", {}, 1);
  EXPECT_EQ(result["stopReason"], "failed");
  EXPECT_EQ(result["agents"][0]["end"], "exited with code 0 and called no tool");
  const Json looked = Run("look", {}, 3);
  EXPECT_EQ(looked["stopReason"], "agentsEnded");
  EXPECT_EQ(looked["agents"][0]["end"], "exited with code 0");
  EXPECT_EQ(looked["agents"][0]["calls"], 1);
}

TEST_F(AgentTest, TakesConnectionsWithoutAnEnd) {
  EXPECT_EQ(Run("look reconnect 550")["stopReason"], "agentsEnded");
  for (const std::string& line : Lines(Text("run/agent-1.out"))) {
    EXPECT_LT(Json::parse(line)["grownKb"].get<double>(), 1e6) << "of which the stack of a thread takes 8 MB";
  }
}

TEST_F(AgentTest, HandsNoVariableOfPawlOn) {
  Run("look environment", {}, 0, {{"PAWL_DATABASE", Path("other.db")}, {"PAWL_TOKENS", Path("tokens")}});
  const Json variables = Json::parse(Text("run/agent-1.out"));
  EXPECT_EQ(variables.size(), 2u) << variables;
  EXPECT_EQ(variables["PAWL_MCP_CONFIG"], Path("run/agent-1/.mcp.json"));
  EXPECT_EQ(variables["PAWL_PROMPT_FILE"], Path("run/agent-1/PROMPT.md"));
}

// The history tells them apart, and each counts its own.
TEST_F(AgentTest, CountsNoProposalOfAnotherRun) {
  const pid_t other = Start({BuiltProgram("pawl"), "agent", "1", "--command", Agent("look hang"), "--folder",
                             Path("other"), "--orchestrator", address_});
  for (int i = 0; i < 1000 && Text("other/agent-1.calls.jsonl").empty(); ++i) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(Run("all", {"--proposals", "3"})["agents"][0]["judged"], 3);
  kill(other, SIGINT);
  Reap(other);
  const Json result = Json::parse(Text("other/result.json"));
  EXPECT_EQ(result["agents"][0]["proposals"], 0);
  EXPECT_EQ(result["agents"][0]["judged"], 0);
  EXPECT_EQ(result["kept"], 0);
}

TEST_F(AgentTest, WorksInAFolderWhoseNameIsNoUtf8) {
  const std::string folder = Path("run\xff");
  const ProcessResult result =
      Pawl({"agent", "1", "--command", Agent("look"), "--folder", folder, "--json", "--orchestrator", address_});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_EQ(Json::parse(Text("run\xff/result.json"))["stopReason"], "agentsEnded");
}

TEST_F(AgentTest, EndsSeveralAgentsInTheTimeOfOne) {
  const Json result = Run("hang", {"--minutes", "0.02", "--agents", "4"});
  EXPECT_EQ(result["stopReason"], "minutes");
  for (const Json& agent : result["agents"]) EXPECT_EQ(agent["end"], "ended by pawl agent");
  EXPECT_LT(took_, absl::Seconds(15) * kSlowdown);
  const Json idle = Run("look hang", {"--idle-minutes", "0.03", "--agents", "4"});
  EXPECT_EQ(idle["stopReason"], "agentsEnded");
  EXPECT_LT(took_, absl::Seconds(15) * kSlowdown);
}

TEST_F(AgentTest, KillsWhatAnAgentLeftThatKilledItsKeeper) {
  const Json result = Run(absl::StrCat("look orphan ", Path("left")), {}, 1);
  EXPECT_EQ(result["stopReason"], "failed");
  EXPECT_EQ(result["agents"][0]["end"], "its keeper died of signal 9 (Killed)");
  EXPECT_LT(took_, absl::Seconds(30));
  EXPECT_TRUE(IsGone(std::stoi(Text("left"))));
}

TEST_F(AgentTest, EndsAnAgentThatStoppedItsKeeper) {
  const Json result = Run("stop hang", {"--minutes", "0.02"});
  EXPECT_EQ(result["agents"][0]["end"], "ended by pawl agent");
}

TEST_F(AgentTest, KeepsALimitedPartOfAFlood) {
  const Json result = Run("flood", {"--minutes", "0.05"});
  EXPECT_EQ(result["stopReason"], "minutes");
  EXPECT_LE(std::filesystem::file_size(Path("run/agent-1.out")), (64u << 20) + 1000);
}

TEST_F(AgentTest, LeavesNoProcessBehind) {
  Run(absl::StrCat("look daemon ", Path("left")));
  const pid_t left = std::stoi(Text("left"));
  EXPECT_TRUE(EndsSoon(left));
}

TEST_F(AgentTest, KillsAnAgentThatStartsTooManyProcesses) {
  const Json result = Run("fork", {"--minutes", "2"}, 1);
  EXPECT_EQ(result["stopReason"], "failed");
  EXPECT_THAT(Text("run/agent-1.err"), HasSubstr("more than 1000 processes"));
}

TEST_F(AgentTest, LeavesNoProcessBehindWhenItIsKilled) {
  std::vector<std::string> argv = Words(absl::StrCat("daemon ", Path("left"), " hang"));
  argv.insert(argv.begin(), BuiltProgram("pawl"));
  const pid_t pawl = Start(argv);
  for (int i = 0; i < 1000 && Text("left").empty(); ++i) absl::SleepFor(absl::Milliseconds(20));
  const pid_t left = std::stoi(Text("left"));
  kill(pawl, SIGKILL);
  Reap(pawl);
  EXPECT_TRUE(EndsSoon(left));
}

TEST_F(AgentTest, EndsWithAnInterrupt) {
  std::vector<std::string> argv = Words(absl::StrCat("daemon ", Path("left"), " hang"));
  argv.insert(argv.begin(), BuiltProgram("pawl"));
  const pid_t pawl = Start(argv);
  for (int i = 0; i < 1000 && Text("left").empty(); ++i) absl::SleepFor(absl::Milliseconds(20));
  kill(pawl, SIGINT);
  EXPECT_EQ(Reap(pawl).exit_code, 130);
  EXPECT_TRUE(EndsSoon(std::stoi(Text("left"))));
  EXPECT_EQ(Json::parse(Text("run/result.json"))["stopReason"], "interrupted");
}

TEST_F(AgentTest, KillsAtOnceWithASecondInterrupt) {
  std::vector<std::string> argv = Words(absl::StrCat("daemon ", Path("left"), " hang"));
  argv.insert(argv.begin(), BuiltProgram("pawl"));
  const pid_t pawl = Start(argv);
  for (int i = 0; i < 1000 && Text("left").empty(); ++i) absl::SleepFor(absl::Milliseconds(20));
  const absl::Time begun = absl::Now();
  kill(pawl, SIGINT);
  absl::SleepFor(absl::Milliseconds(200));  // two that wait are one
  kill(pawl, SIGINT);
  EXPECT_EQ(Reap(pawl).exit_code, 130);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(4) * kSlowdown) << "it takes no TERM";
  EXPECT_TRUE(EndsSoon(std::stoi(Text("left"))));
  EXPECT_EQ(Json::parse(Text("run/result.json"))["stopReason"], "interrupted");
}

}  // namespace
}  // namespace pawl
