// What `pawl agent` is made of, without processes: how agents are started, what they report, limits, and their tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "agent/drive/agent_command.h"
#include "agent/drive/agent_usage.h"
#include "agent/drive/driven_features.h"
#include "agent/drive/ledger.h"
#include "agent/drive/transcript.h"
#include "agent/mcp/json.h"
#include "tests/agent/fake_campaigns.h"

namespace pawl {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

AgentCommand Command(const std::string& text) {
  AgentCommand command;
  command.text = text;
  command.prompt = "make \"it\" fast";
  command.folder = "/work space/agent-1";
  command.mcp = {"/opt/pawl", "mcp", "--connect", "/tmp/a \"b\""};
  return command;
}

TEST(AgentCommandTest, SplitsWordsAsAShellDoes) {
  EXPECT_THAT(*CommandWords("codex exec"), ElementsAre("codex", "exec"));
  EXPECT_THAT(*CommandWords("  a\t'b c'  \"d 'e'\" f\\ g '' x\"y\"z "),
              ElementsAre("a", "b c", "d 'e'", "f g", "", "xyz"));
  EXPECT_THAT(*CommandWords("'a\\b' \"c\\\"d\" $HOME `x`;y"), ElementsAre("a\\b", "c\"d", "$HOME", "`x`;y"));
  for (const char* bad : {"", "   ", "a 'b", "a \"b"}) EXPECT_FALSE(CommandWords(bad).ok()) << bad;
}

TEST(AgentCommandTest, KnowsCodex) {
  for (const char* text : {"codex", "codex exec", "/usr/bin/codex exec --model m"}) {
    const AgentStart start = *StartOfAgent(Command(text));
    EXPECT_EQ(start.name, "codex");
    EXPECT_EQ(start.argv[1], "exec");
    EXPECT_EQ(start.argv.back(), "make \"it\" fast");
    EXPECT_THAT(start.argv, Contains("--json"));
    EXPECT_THAT(start.argv, Contains("mcp_servers.pawl.command=\"/opt/pawl\""));
    EXPECT_THAT(start.argv, Contains("mcp_servers.pawl.args=[\"mcp\",\"--connect\",\"/tmp/a \\\"b\\\"\"]"));
  }
}

TEST(AgentCommandTest, KnowsClaudeGeminiAndOpencode) {
  const AgentStart claude = *StartOfAgent(Command("claude --model opus"));
  EXPECT_THAT(claude.argv, ElementsAre("claude", "--model", "opus", "--output-format", "stream-json", "--verbose",
                                       "--mcp-config", "/work space/agent-1/.mcp.json", "--strict-mcp-config",
                                       "--allowedTools", "mcp__pawl", "-p", "make \"it\" fast"));
  const AgentStart gemini = *StartOfAgent(Command("gemini"));
  EXPECT_EQ(Json::parse(gemini.files.at(".gemini/settings.json"))["mcpServers"]["pawl"]["command"], "/opt/pawl");
  const AgentStart opencode = *StartOfAgent(Command("opencode"));
  EXPECT_EQ(opencode.argv[1], "run");
  EXPECT_EQ(Json::parse(opencode.files.at("opencode.json"))["mcp"]["pawl"]["command"][3], "/tmp/a \"b\"");
  for (const AgentStart& start : {claude, gemini, opencode}) {
    EXPECT_EQ(Json::parse(start.files.at(".mcp.json"))["mcpServers"]["pawl"]["args"][0], "mcp");
    EXPECT_EQ(start.files.at("PROMPT.md"), "make \"it\" fast");
  }
}

TEST(AgentCommandTest, GivesAnotherCommandWhatItsPlaceholdersAskFor) {
  const AgentStart start = *StartOfAgent(Command("./mine --mcp={mcp_config} {prompt_file}"));
  EXPECT_THAT(start.argv,
              ElementsAre("./mine", "--mcp=/work space/agent-1/.mcp.json", "/work space/agent-1/PROMPT.md"));
  EXPECT_THAT(StartOfAgent(Command("./mine -q"))->argv, ElementsAre("./mine", "-q", "make \"it\" fast"));
  EXPECT_THAT(StartOfAgent(Command("./mine 'x {prompt}'"))->argv, ElementsAre("./mine", "x make \"it\" fast"));
}

TEST(AgentUsageTest, AddsUpWhatEachAgentReports) {
  AgentUsage codex;
  codex.Take(R"({"type":"turn.started"})");
  codex.Take(
      R"({"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":20,"output_tokens":40,"reasoning_output_tokens":10}})");
  EXPECT_EQ(codex.tokens(), 240);
  AgentUsage claude;
  claude.Take(
      R"({"type":"assistant","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":1000,"output_tokens":7}}})");
  EXPECT_EQ(claude.tokens(), 1010);
  claude.Take(
      R"({"type":"result","total_cost_usd":0.25,"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":2000,"output_tokens":70}})");
  EXPECT_EQ(claude.tokens(), 2100);
  EXPECT_EQ(claude.dollars(), 0.25);
  AgentUsage gemini;
  gemini.Take(
      R"({"type":"result","status":"success","stats":{"total_tokens":55,"input_tokens":50,"output_tokens":5}})");
  EXPECT_EQ(gemini.tokens(), 55);
  AgentUsage opencode;
  for (int i = 0; i < 2; ++i) {
    opencode.Take(
        R"({"type":"step_finish","part":{"cost":0.01,"tokens":{"input":5,"output":6,"reasoning":1,"cache":{"read":100,"write":0}}}})");
  }
  EXPECT_EQ(opencode.tokens(), 224);
  EXPECT_DOUBLE_EQ(opencode.dollars(), 0.02);
}

// It prints a line for each block of a message, all with the message's usage as far as that is known.
TEST(AgentUsageTest, CountsAMessageOfClaudeOnce) {
  const auto message = [](const std::string& id, int output) {
    return absl::StrCat(R"({"type":"assistant","message":{"id":")", id,
                        R"(","usage":{"input_tokens":900,"output_tokens":)", output, "}}}");
  };
  const auto result = [](const std::string& session, int output, double dollars) {
    return absl::StrCat(R"({"type":"result",)", session, R"("usage":{"input_tokens":0,"output_tokens":)", output,
                        R"(},"total_cost_usd":)", dollars, "}");
  };
  AgentUsage claude;
  for (int i = 0; i < 4; ++i) claude.Take(message("msg_1", 100));
  EXPECT_EQ(claude.tokens(), 1000);
  claude.Take(message("msg_2", 1));
  claude.Take(message("msg_1", 100));
  claude.Take(message("msg_2", 100));
  EXPECT_EQ(claude.tokens(), 2000);
  claude.Take(result("", 1500, 0.5));
  EXPECT_EQ(claude.tokens(), 1500) << "a result decides";
  EXPECT_EQ(claude.dollars(), 0.5);
  // A script that starts it again.
  claude.Take(message("msg_3", 100));
  EXPECT_EQ(claude.tokens(), 2500);
  claude.Take(result(R"("session_id":"s",)", 1200, 0.25));
  EXPECT_EQ(claude.tokens(), 2700);
  EXPECT_EQ(claude.dollars(), 0.75);
  claude.Take(result(R"("session_id":"s",)", 1300, 0.5));
  EXPECT_EQ(claude.tokens(), 2800) << "the same session, further on";
  EXPECT_EQ(claude.dollars(), 1);
  claude.Take(R"({"type":"result","subtype":"error"})");
  EXPECT_EQ(claude.tokens(), 2800);
}

TEST(AgentUsageTest, RemembersALimitedNumberOfMessages) {
  AgentUsage claude;
  for (int i = 0; i < 100'000; ++i) {
    claude.Take(absl::StrCat(R"({"type":"assistant","message":{"id":"msg_)", i, R"(","usage":{"output_tokens":1}}})"));
  }
  EXPECT_EQ(claude.tokens(), 100'000);
}

TEST(AgentUsageTest, PassesOverEverythingElse) {
  AgentUsage usage;
  for (const char* line :
       {"", "text", "{", "[1]", "{}", R"({"type":7})", R"({"type":"turn.completed"})",
        R"({"type":"turn.completed","usage":7})",
        R"({"type":"turn.completed","usage":{"input_tokens":-5,"output_tokens":"x"}})",
        R"({"type":"result","stats":[1]})", R"({"type":"step_finish","part":{"tokens":null,"cost":1e999}})"}) {
    usage.Take(line);
  }
  EXPECT_EQ(usage.tokens(), 0);
  EXPECT_EQ(usage.dollars(), 0);
}

class LedgerTest : public testing::Test {
 protected:
  static v1::Event Judged(const std::string& author, v1::Verdict verdict) {
    v1::Event event;
    event.mutable_finished()->mutable_iteration()->set_author(author);
    event.mutable_finished()->mutable_iteration()->set_verdict(verdict);
    return event;
  }
  AgentLedger::Time now_;
};

// Another was kept while it was measured: a comparison with that one decides.
TEST_F(LedgerTest, CountsAnOvertakenProposalOnceItIsSettled) {
  const auto overtaken = [](int number) {
    v1::Event event = Judged("a", v1::REVERTED);
    v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
    iteration.set_number(number);
    iteration.set_speedup_over_start(2);
    iteration.set_compared_with(3);
    return event;
  };
  AgentLedger ledger({.without_keep = 1}, now_);
  ledger.AddAgent("a", now_);
  ledger.Take(overtaken(4));
  EXPECT_EQ(ledger.accounts().at("a").judged, 0);
  v1::Event end;
  v1::RevisedIteration& revised = *end.mutable_finished()->add_revised();
  revised.set_number(4);
  revised.set_verdict(v1::KEPT);
  revised.set_speedup_over_start(2.1);
  revised.mutable_over_best()->set_result(v1::FASTER);
  revised.set_compared_with(3);
  ledger.Take(end);
  EXPECT_EQ(ledger.kept(), 1);
  EXPECT_EQ(ledger.accounts().at("a").judged, 1);
  EXPECT_EQ(ledger.Stop(now_), std::nullopt);
  ledger.Take(overtaken(5));
  EXPECT_EQ(ledger.Stop(now_), std::nullopt);
  v1::Event faster = Judged("somebody else", v1::KEPT);
  faster.mutable_finished()->mutable_iteration()->set_speedup_over_start(3);
  ledger.Take(faster);
  EXPECT_EQ(ledger.Stop(now_), AgentStop::kWithoutKeep) << "it is not compared any more";
}

TEST_F(LedgerTest, LimitsTheProposalsOfAllAgentsTogether) {
  AgentLedger ledger({.proposals = 3}, now_);
  ledger.AddAgent("a", now_);
  ledger.AddAgent("b", now_);
  EXPECT_TRUE(ledger.Propose("a"));
  EXPECT_TRUE(ledger.Propose("b"));
  EXPECT_TRUE(ledger.Propose("b"));
  EXPECT_FALSE(ledger.Propose("a"));
  ledger.Unpropose("b");
  EXPECT_TRUE(ledger.Propose("a"));
  EXPECT_EQ(ledger.Stop(now_), std::nullopt) << "they wait for the verdicts";
  ledger.Take(Judged("a", v1::KEPT));
  ledger.Take(Judged("a", v1::REVERTED));
  ledger.Take(Judged("pawl", v1::KEPT));
  EXPECT_EQ(ledger.Stop(now_), std::nullopt);
  v1::Event dropped;
  dropped.mutable_dropped()->set_author("b");
  ledger.Take(dropped);
  EXPECT_EQ(ledger.Stop(now_), AgentStop::kProposals);
  EXPECT_EQ(ledger.kept(), 1);
  EXPECT_EQ(ledger.accounts().at("a").judged, 2);
}

TEST_F(LedgerTest, CountsAProposalThatPawlChoseByItself) {
  AgentLedger ledger({.proposals = 1}, now_);
  ledger.AddAgent("a", now_);
  EXPECT_TRUE(ledger.Propose("a"));
  v1::Event event;
  event.mutable_proposed()->set_author("a");
  event.mutable_proposed()->set_number(4);
  ledger.Take(event);
  event.mutable_planned()->set_author("pawl");
  event.mutable_planned()->set_iteration(7);
  event.mutable_planned()->set_proposal(4);
  ledger.Take(event);
  event = Judged("pawl", v1::KEPT);
  event.mutable_finished()->mutable_iteration()->set_number(7);
  ledger.Take(event);
  EXPECT_EQ(ledger.accounts().at("a").judged, 1);
  EXPECT_EQ(ledger.Stop(now_), AgentStop::kProposals);
}

TEST_F(LedgerTest, StopsAtEachLimit) {
  const auto stop = [&](AgentLimits limits, const std::function<void(AgentLedger&)>& use) {
    AgentLedger ledger(limits, now_);
    ledger.AddAgent("a", now_);
    ledger.AddAgent("b", now_);
    EXPECT_EQ(ledger.Stop(now_), std::nullopt);
    use(ledger);
    return ledger.Stop(now_ + std::chrono::minutes(5));
  };
  const auto nothing = [](AgentLedger&) {};
  const auto use = [](AgentLedger& ledger) {
    ledger.Used("a", 600, 0.6);
    ledger.Used("b", 400, 0.4);
    ledger.GpuSeconds(30);
  };
  EXPECT_EQ(stop({}, use), std::nullopt);
  EXPECT_EQ(stop({.tokens = 1000}, use), AgentStop::kTokens);
  EXPECT_EQ(stop({.tokens = 1001}, use), std::nullopt);
  EXPECT_EQ(stop({.dollars = 1}, use), AgentStop::kDollars);
  EXPECT_EQ(stop({.gpu_seconds = 30}, use), AgentStop::kGpuSeconds);
  EXPECT_EQ(stop({.minutes = 5}, nothing), AgentStop::kMinutes);
  EXPECT_EQ(stop({.minutes = 5.1}, nothing), std::nullopt);
  EXPECT_EQ(stop({.without_keep = 2},
                 [](AgentLedger& ledger) {
                   ledger.Take(Judged("a", v1::REVERTED));
                   ledger.Take(Judged("b", v1::REJECTED));
                 }),
            AgentStop::kWithoutKeep);
  EXPECT_EQ(stop({.without_keep = 2},
                 [](AgentLedger& ledger) {
                   ledger.Take(Judged("a", v1::REVERTED));
                   ledger.Take(Judged("b", v1::KEPT));
                   ledger.Take(Judged("b", v1::REVERTED));
                 }),
            std::nullopt);
  // A keep that arrives between two looks at the limits does not undo that it was reached.
  EXPECT_EQ(stop({.without_keep = 2},
                 [](AgentLedger& ledger) {
                   ledger.Take(Judged("a", v1::REVERTED));
                   ledger.Take(Judged("a", v1::REVERTED));
                   ledger.Take(Judged("a", v1::KEPT));
                 }),
            AgentStop::kWithoutKeep);
  EXPECT_EQ(stop({},
                 [](AgentLedger& ledger) {
                   v1::Event ended;
                   ended.mutable_ended();
                   ledger.Take(ended);
                 }),
            AgentStop::kCampaignEnded);
}

TEST_F(LedgerTest, SeesWhoCallsNoTool) {
  AgentLedger ledger({.idle_minutes = 10}, now_);
  ledger.AddAgent("a", now_);
  ledger.AddAgent("b", now_);
  ledger.Active("b", now_ + std::chrono::minutes(5));
  EXPECT_FALSE(ledger.Idle("a", now_ + std::chrono::minutes(9)));
  EXPECT_TRUE(ledger.Idle("a", now_ + std::chrono::minutes(10)));
  EXPECT_FALSE(ledger.Idle("b", now_ + std::chrono::minutes(10)));
}

TEST(DrivenFeaturesTest, GivesAnAgentItsCampaignWithinTheLimits) {
  const std::string file = testing::TempDir() + "calls.jsonl";
  {
    AgentLedger ledger({.proposals = 1}, {});
    ledger.AddAgent("codex 1", {});
    const auto campaigns = std::make_shared<FakeCampaigns>();
    const DrivenFeatures features(campaigns, {.version = "1", .author = "codex 1", .campaign = "campaigns/7"}, ledger,
                                  file);
    EXPECT_EQ(features.tools().size(), 8u);
    const McpCaller caller;
    const Cancellation never;
    const McpCall call = {caller, never, [](double, double, const std::string&) {}};
    EXPECT_FALSE(features.CallTool("situation", Json::object(), call).failed);
    const Json change = {{"variable", "THREADS"}, {"value", 64}};
    campaigns->propose_fails = absl::AlreadyExistsError("tried before");
    EXPECT_TRUE(features.CallTool("propose", change, call).failed);
    campaigns->propose_fails = absl::OkStatus();
    EXPECT_FALSE(features.CallTool("propose", change, call).failed) << "a refused one does not count";
    const McpToolResult refused = features.CallTool("propose", change, call);
    EXPECT_TRUE(refused.failed);
    EXPECT_THAT(refused.content[0]["text"].get<std::string>(), HasSubstr("all 1 proposals are used up"));
    EXPECT_EQ(campaigns->proposals().size(), 1u);
    EXPECT_EQ(campaigns->proposals()[0].author(), "codex 1");
    EXPECT_GT(ledger.accounts().at("codex 1").active.time_since_epoch().count(), 0);
  }
  std::ifstream in(file);
  std::vector<std::string> tools;
  for (std::string line; std::getline(in, line);) tools.push_back(Json::parse(line)["tool"]);
  EXPECT_THAT(tools, ElementsAre("situation", "propose", "propose", "propose"));
}

TEST(DrivenFeaturesTest, WritesOnlyTheBeginningOfLongArguments) {
  const std::string file = testing::TempDir() + "long_calls.jsonl";
  {
    AgentLedger ledger({}, {});
    const DrivenFeatures features(std::make_shared<FakeCampaigns>(), {.version = "1", .author = "codex 1"}, ledger,
                                  file);
    const McpCaller caller;
    const Cancellation never;
    const McpCall call = {caller, never, [](double, double, const std::string&) {}};
    features.CallTool("propose", {{"name", "n"}, {"patch", "--- a" + std::string(1 << 20, 'y')}}, call);
    Json many = Json::object();
    for (int i = 0; i < 4000; ++i) many[absl::StrCat("argument", i)] = i;
    features.CallTool("propose", many, call);
  }
  EXPECT_LT(std::filesystem::file_size(file), 100u << 10);
  std::ifstream in(file);
  std::string line;
  ASSERT_TRUE(std::getline(in, line));
  const Json arguments = Json::parse(line)["arguments"];
  EXPECT_EQ(arguments["name"], "n");
  EXPECT_THAT(arguments["patch"].get<std::string>(), testing::StartsWith("--- ayyy"));
  EXPECT_THAT(arguments["patch"].get<std::string>(), testing::EndsWith("[cut: 1048581 bytes]"));
  ASSERT_TRUE(std::getline(in, line));
  EXPECT_THAT(Json::parse(line)["arguments"].get<std::string>(), testing::StartsWith("{\"argument0\":0,"));
}

std::string TextOf(const std::string& file) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(TranscriptTest, IsKeptUpToALimitAndSaysSo) {
  const std::string file = testing::TempDir() + "transcript";
  Transcript printed(file, 2 << 20);
  for (int i = 0; i < 5; ++i) printed.Add(std::string(500'000, 'x'));
  EXPECT_EQ(TextOf(file), std::string(2 << 20, 'x') + "\n[the rest is not kept: more than 2 MiB]\n");
  Transcript calls(file, 1 << 20);
  for (int i = 0; i < 3; ++i) calls.AddLine(std::string(500'000, 'y'));
  calls.AddLine("{}");
  const std::string line(500'000, 'y');
  EXPECT_EQ(TextOf(file), line + "\n" + line + "\n{\"cut\":\"the rest is not kept: more than 1 MiB\"}\n");
  Transcript("").Add("nothing");
}

TEST(DrivenFeaturesTest, CountsNoProposalThatThrew) {
  AgentLedger ledger({.proposals = 1}, {});
  ledger.AddAgent("codex 1", {});
  const auto campaigns = std::make_shared<FakeCampaigns>();
  const DrivenFeatures features(campaigns, {.version = "1", .author = "codex 1", .campaign = "campaigns/7"}, ledger,
                                "");
  const McpCaller caller;
  const Cancellation never;
  const McpCall call = {caller, never, [](double, double, const std::string&) {}};
  // No schema lets it through; the library that reads arguments throws.
  EXPECT_THROW(features.CallTool("propose", {{"campaign", Json::array()}}, call), Json::exception);
  EXPECT_EQ(ledger.accounts().at("codex 1").proposals, 0);
}

}  // namespace
}  // namespace pawl
