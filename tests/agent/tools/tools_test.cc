// Pawl's tools, resources and prompts, over a campaign that the test makes up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "agent/mcp/schema.h"
#include "agent/mcp/server.h"
#include "agent/tools/forms.h"
#include "agent/tools/pawl_features.h"
#include "agent/tools/proposal_name.h"
#include "tests/agent/fake_campaigns.h"
#include "tests/kernels/contract_alone.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ToolsTest : public testing::Test {
 protected:
  void Open(PawlFeatures::Options options = {}) {
    auto campaigns = std::make_unique<FakeCampaigns>();
    campaigns_ = campaigns.get();
    features_ = std::make_unique<PawlFeatures>(std::move(campaigns), std::make_unique<FakeBundles>(), options);
    server_ = std::make_unique<McpServer>(*features_);
  }
  void SetUp() override { Open(); }

  // As a client of the stateless era calls it.
  Json Call(const std::string& tool, Json arguments, McpCaller caller = {}) {
    RpcMessage message;
    message.id = 1;
    message.method = "tools/call";
    message.params = {{"name", tool},
                      {"arguments", std::move(arguments)},
                      {"_meta",
                       {{"io.modelcontextprotocol/protocolVersion", kStatelessVersion},
                        {"io.modelcontextprotocol/clientCapabilities", Json::object()},
                        {"io.modelcontextprotocol/clientInfo", {{"name", "tester"}, {"version", "1"}}}}}};
    McpServer::Surroundings around;
    around.caller = std::move(caller);
    around.cancellation = &cancellation_;
    const Json reply = server_->Answer(message, McpEra::kStateless, around).message;
    EXPECT_TRUE(reply.contains("result")) << reply;
    return reply["result"];
  }
  // Where it must succeed: the structured result, which fits its schema and the limit.
  Json Ask(const std::string& tool, Json arguments) {
    const Json result = Call(tool, std::move(arguments));
    EXPECT_FALSE(result.contains("isError")) << result;
    const Json& structured = result["structuredContent"];
    for (const Json& each : features_->tools()) {
      if (each["name"] == tool) EXPECT_EQ(SchemaMistake(structured, each["outputSchema"]), "") << structured;
    }
    EXPECT_LE(JsonText(structured).size(), kMostResult);
    EXPECT_EQ(Json::parse(result["content"][0]["text"].get<std::string>()), structured);
    return structured;
  }
  // Where it must fail: what the model is told.
  std::string Refused(const std::string& tool, Json arguments, McpCaller caller = {}) {
    const Json result = Call(tool, std::move(arguments), std::move(caller));
    EXPECT_TRUE(result.contains("isError")) << result;
    EXPECT_FALSE(result.contains("structuredContent"));
    return result.contains("isError") ? result["content"][0]["text"].get<std::string>() : "";
  }

  FakeCampaigns* campaigns_ = nullptr;
  std::unique_ptr<PawlFeatures> features_;
  std::unique_ptr<McpServer> server_;
  Cancellation cancellation_;
};

TEST_F(ToolsTest, AreTenWithSchemasThatNeedNoOtherFile) {
  std::vector<std::string> names;
  for (const Json& tool : features_->tools()) {
    names.push_back(tool["name"]);
    EXPECT_EQ(tool["inputSchema"]["type"], "object");
    EXPECT_EQ(tool["inputSchema"]["additionalProperties"], false);
    EXPECT_EQ(tool["outputSchema"]["type"], "object");
    EXPECT_EQ(JsonText(tool).find("$ref"), std::string::npos);
    EXPECT_FALSE(tool["description"].get<std::string>().empty());
  }
  EXPECT_THAT(names, ElementsAre("submit", "campaigns", "situation", "propose", "wait", "explain", "history", "diff",
                                 "best", "check"));
  EXPECT_LT(JsonText(features_->tools()).size(), 30'000u) << "they take their share of every conversation";
}

TEST_F(ToolsTest, SituationSaysFirstWhatMatters) {
  const Json situation = Ask("situation", {{"campaign", "7"}});
  std::vector<std::string> keys;
  for (const auto& [key, value] : situation.items()) keys.push_back(key);
  const auto at = [&](const std::string& key) { return std::find(keys.begin(), keys.end(), key) - keys.begin(); };
  EXPECT_LT(at("best"), at("roof"));
  EXPECT_LT(at("roof"), at("findings"));
  EXPECT_LT(at("findings"), at("failed"));
  EXPECT_LT(at("failed"), at("engineWouldTry"));
  EXPECT_LT(at("engineWouldTry"), at("edit"));
  EXPECT_EQ(situation["best"]["timeUs"], 10);
  EXPECT_EQ(situation["best"]["goalSpeedup"], 3);
  EXPECT_EQ(situation["roof"]["metrics"]["dram_throughput"], 61.25);
  EXPECT_EQ(situation["roof"]["workGBs"], 1.229);
  EXPECT_EQ(situation["findings"][0]["advice"], "Use float4");
  EXPECT_EQ(situation["findings"][0]["wants"], "vector_width+");
  ASSERT_EQ(situation["failed"].size(), 1u);
  EXPECT_EQ(situation["failed"][0]["change"], "edit vectorise");
  EXPECT_EQ(situation["failed"][0]["failedCheck"], "tolerance");
  EXPECT_EQ(situation["failed"][0]["failure"], "out[32] is 0, expected 1");
  EXPECT_EQ(situation["kept"][0]["iteration"], 1);
  EXPECT_EQ(situation["engineWouldTry"][0]["change"], "THREADS 128→256");
  EXPECT_EQ(situation["edit"]["files"][0],
            (Json{{"path", "saxpy.cu"}, {"lines", 3}, {"uri", "pawl://campaigns/7/files/saxpy.cu"}}));
  EXPECT_EQ(situation["edit"]["files"][1]["path"], "kernel.toml");
  EXPECT_EQ(situation["edit"]["files"][1]["uri"], "pawl://campaigns/7/files/kernel.toml");
  EXPECT_TRUE(situation["lessons"].empty());
  EXPECT_EQ(situation["edit"]["variables"][0]["now"], 128);
  EXPECT_EQ(situation["contract"]["tensors"][0], "x: f32 [N], input");
  EXPECT_EQ(situation["budgetLeft"], (Json{{"iterations", 48}, {"minutes", 58}}));
  EXPECT_TRUE(situation["takesProposals"]);
}

TEST_F(ToolsTest, SituationOfAContractAloneSaysHowToStart) {
  campaigns_->bundle = WithoutImplementation(campaigns_->bundle);
  campaigns_->bundle.mutable_problem()->set_path("problem.py");
  campaigns_->bundle.mutable_problem()->set_text("def inputs(sizes, seed):\n  pass\n");
  campaigns_->campaign.clear_best();
  v1::Situation& situation = campaigns_->situation;
  *situation.mutable_campaign() = campaigns_->campaign;
  situation.clear_best();
  situation.clear_variables();
  situation.clear_constraints();
  situation.clear_findings();
  situation.clear_untried();
  const Json answer = Ask("situation", {{"campaign", "7"}});
  EXPECT_EQ(answer.items().begin().key(), "start") << "first of all";
  EXPECT_THAT(answer["start"].get<std::string>(), StartsWith("there is no start yet"));
  EXPECT_FALSE(answer.contains("best"));
  EXPECT_EQ(answer["goalSpeedup"], 3);
  EXPECT_EQ(answer["contract"]["tensors"][0], "x: f32 [N], input");
  EXPECT_EQ(answer["contract"]["reference"]["path"], "problem.py");
  EXPECT_THAT(answer["contract"]["reference"]["text"].get<std::string>(), HasSubstr("def inputs"));
  ASSERT_EQ(answer["edit"]["files"].size(), 1u);
  EXPECT_EQ(answer["edit"]["files"][0]["path"], "kernel.toml");
  EXPECT_THAT(answer["edit"]["how"].get<std::string>(), HasSubstr("at least one [[launch]]"));
  ASSERT_EQ(answer["failed"].size(), 1u) << "what failed before";
}

// A campaign of another kernel, in which an edit and a change were tried for the same finding.
void AddOtherCampaign(FakeCampaigns* campaigns, const std::string& name, const std::string& device) {
  v1::Campaign other = campaigns->campaign;
  other.set_name(name);
  other.set_bundle("rows");
  other.set_device(device);
  std::vector<v1::Iteration> iterations(3);
  for (int i = 0; i < 3; ++i) {
    iterations[static_cast<size_t>(i)].set_number(i);
    iterations[static_cast<size_t>(i)].set_verdict(v1::KEPT);
  }
  iterations[1].mutable_change()->set_variable("PAD");
  iterations[1].mutable_change()->set_from(0);
  iterations[1].mutable_change()->set_to(8);
  iterations[1].mutable_finding()->set_rule("few-loads-in-flight");
  iterations[1].set_speedup_over_parent(1.5);
  iterations[2].mutable_change()->mutable_source()->set_name("swizzled tile");
  iterations[2].set_why("few loads in flight: bank conflict of the tile; XOR swizzle");
  iterations[2].set_author("codex");
  iterations[2].set_verdict(v1::REVERTED);
  iterations[2].set_reason("right, but 0.9x its parent's speed");
  iterations[2].set_speedup_over_parent(0.9);
  campaigns->others.push_back(other);
  campaigns->of_others[name] = iterations;
}

TEST_F(ToolsTest, SituationShowsWhatOthersLearnedOfTheSameFinding) {
  AddOtherCampaign(campaigns_, "campaigns/3", "replay of an NVIDIA H200, recorded on 2026-11-15");
  AddOtherCampaign(campaigns_, "campaigns/2", "NVIDIA L4");
  const Json lessons = Ask("situation", {{"campaign", "7"}})["lessons"];
  ASSERT_EQ(lessons.size(), 2u) << "of this GPU, not of the campaign itself";
  EXPECT_EQ(lessons[0]["change"], "edit swizzled tile") << "edits come first";
  EXPECT_EQ(lessons[0]["verdict"], "reverted");
  EXPECT_EQ(lessons[0]["reason"], "right, but 0.9x its parent's speed");
  EXPECT_EQ(lessons[1]["change"], "PAD 0→8");
  EXPECT_EQ(lessons[1]["finding"], "few-loads-in-flight");
  const int before = campaigns_->lists;
  Ask("situation", {{"campaign", "7"}});
  EXPECT_EQ(campaigns_->lists, before) << "what has not changed is not read again";
}

TEST_F(ToolsTest, LessonsAreFoundByTheirWords) {
  AddOtherCampaign(campaigns_, "campaigns/3", "NVIDIA H200");
  const auto found = [&](const std::string& query) {
    absl::StatusOr<McpCached> read = features_->ReadResource("pawl://lessons" + query);
    EXPECT_TRUE(read.ok()) << query << " " << read.status();
    return read.ok() ? Json::parse(read->result["contents"][0]["text"].get<std::string>()) : Json();
  };
  EXPECT_EQ(found("?query=Bank%20conflicts&gpu=h200")["lessons"][0]["change"], "edit swizzled tile");
  EXPECT_EQ(found("?query=bank+conflicts&gpu=L4")["found"], 0);
  EXPECT_EQ(found("?query=swizzle+tensor")["found"], 0) << "all of the words";
  EXPECT_EQ(found("?query=codex")["found"], 2) << "by author, here and there";
  EXPECT_EQ(found("?query=PAD+8")["found"], 1) << "an arrow stands between two words";
  EXPECT_EQ(found("?query=%D1%81%D0%BB%D0%BE%D0%B2%D0%BE")["found"], 0) << "a word of other letters is a word";
  EXPECT_EQ(found("?query=%E2%86%92%3F!")["found"], 0) << "what has no word is in no lesson";
  campaigns_->iterations[2].set_why("schneller durch größere Kacheln");
  campaigns_->campaign.set_last_sequence(41);
  EXPECT_EQ(found("?query=gr%C3%B6%C3%9Fer")["found"], 1);
  EXPECT_EQ(found("?query=gr+er")["found"], 0) << "no parts of it";
  EXPECT_EQ(found("?edits=true")["found"], 2);
  EXPECT_EQ(found("")["found"], 4) << "the start variant teaches nothing";
}

TEST_F(ToolsTest, BestShowsEveryFileThatAnEditMayChange) {
  const Json toml = Ask("best", {{"campaign", "7"}, {"file", "kernel.toml"}});
  EXPECT_THAT(toml["source"]["text"].get<std::string>(),
              HasSubstr("name = \"THREADS\"\nvalues = [64, 128]\nstart = 128\n"));
  EXPECT_EQ(toml["uri"], "pawl://campaigns/7/files/kernel.toml");
  EXPECT_EQ(toml["files"], "saxpy.cu, kernel.toml");
  EXPECT_THAT(Refused("best", {{"campaign", "7"}, {"file", "reference.cu"}}),
              HasSubstr("the implementation has no file reference.cu; it has saxpy.cu, kernel.toml"));
}

TEST_F(ToolsTest, SituationOfALongCampaignFitsTheLimitAndSaysWhatIsLeftOut) {
  for (int i = 3; i < 500; ++i) {
    v1::Iteration iteration = campaigns_->iterations[2];
    iteration.set_number(i);
    iteration.set_reason(std::string(5000, 'r'));
    iteration.set_why(std::string(1000, 'w'));
    *campaigns_->situation.add_tried() = iteration;
  }
  for (int i = 0; i < 300; ++i) *campaigns_->situation.add_findings() = campaigns_->situation.findings(0);
  const Json situation = Ask("situation", {{"campaign", "campaigns/7"}});
  EXPECT_GT(situation["olderTried"].get<int>(), 0);
  EXPECT_GT(situation["leftOut"]["failed"].get<int>(), 0);
  EXPECT_EQ(situation["failed"][0]["iteration"], 499) << "the newest first";
}

TEST_F(ToolsTest, RefusesNamesThatAreNone) {
  EXPECT_THAT(Refused("situation", Json::object()), HasSubstr("missing: campaign"));
  EXPECT_THAT(Refused("situation", {{"campaign", "eight"}}), HasSubstr("campaigns/7"));
  EXPECT_THAT(Refused("situation", {{"campaign", "8"}}), StartsWith("there is no campaigns/8\nfix: "));
  EXPECT_THAT(Refused("situation", {{"campaign", 7.5}}), HasSubstr("campaign: expected string"));
  EXPECT_THAT(Refused("explain", {{"campaign", "7"}, {"iteration", 99}}), HasSubstr("campaigns/7/iterations/99"));
  EXPECT_THAT(Refused("wait", {{"proposal", "campaigns/7"}}), HasSubstr("what `propose` returned"));
  EXPECT_THAT(Refused("wait", {{"proposal", "campaigns/7/proposals/-1-0123456789ab"}}), HasSubstr("propose"));
}

TEST_F(ToolsTest, TakesNumbersForTextsAndTextsForNumbers) {
  EXPECT_EQ(Ask("situation", {{"campaign", 7}})["campaign"], "campaigns/7");
  EXPECT_EQ(Ask("explain", {{"campaign", 7}, {"iteration", "1"}})["iteration"], 1);
  EXPECT_THAT(Refused("explain", {{"campaign", 7}, {"iteration", "one"}}), HasSubstr("iteration: expected integer"));
}

TEST_F(ToolsTest, ProposeTakesOneChangeAndAnswersWithItsName) {
  const Json proposed =
      Ask("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 64}, {"why", "more blocks"}});
  EXPECT_EQ(proposed["change"], "THREADS →64");
  EXPECT_EQ(proposed["proposalsBefore"], 0);
  EXPECT_THAT(proposed["proposal"].get<std::string>(), StartsWith("campaigns/7/proposals/40-"));
  const Json edit = Ask("propose", {{"campaign", "7"}, {"name", "unroll"}, {"patch", "--- a\n+++ b\n"}});
  EXPECT_EQ(edit["change"], "edit unroll");
  ASSERT_EQ(campaigns_->proposals().size(), 2u);
  EXPECT_EQ(campaigns_->proposals()[0].author(), "tester");
  EXPECT_EQ(campaigns_->proposals()[0].why(), "more blocks");
  EXPECT_EQ(campaigns_->proposals()[1].change().source().patch(), "--- a\n+++ b\n");
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}}), HasSubstr("variable and value, or name and patch"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}}), HasSubstr("both variable and value"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"name", "x"}}), HasSubstr("a name and a patch"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"name", "x"}, {"patch", "y"}, {"variable", "z"}, {"value", 1}}),
              HasSubstr("two changes"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"name", "x"}, {"patch", std::string((1 << 20) + 1, 'x')}}),
              HasSubstr("patch: expected at most 1048576 bytes"));
  v1::ErrorDetail detail;
  detail.set_fix("propose another change");
  campaigns_->propose_fails = WithErrorDetail(absl::AlreadyExistsError("this variant was tried before"), detail);
  EXPECT_EQ(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 64}}),
            "this variant was tried before\nfix: propose another change");
}

// Some clients write every number as a float.
TEST_F(ToolsTest, TakeWholeNumbersAsFloats) {
  Ask("propose", {{"campaign", 7.0}, {"variable", "THREADS"}, {"value", 64.0}});
  EXPECT_EQ(campaigns_->proposals().back().change().to(), 64);
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 64.5}}),
              HasSubstr("value: expected integer or string or boolean"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 1e300}}), HasSubstr("value"));
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", true}}),
              HasSubstr("\"true\" is not a value of THREADS"));
  EXPECT_EQ(Ask("history", {{"campaign", "7"}, {"pageSize", 1.0}})["iterations"].size(), 1u);
}

class WaitToolTest : public ToolsTest {
 protected:
  void SetUp() override {
    ToolsTest::SetUp();
    proposal_ = Ask("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 64}})["proposal"];
    v1::Event event;
    event.set_sequence(41);
    event.mutable_proposed()->set_author("tester");
    *event.mutable_proposed()->mutable_change() = campaigns_->proposals()[0].change();
    campaigns_->Add(event);
  }
  v1::Event Planned(const std::string& author) {
    v1::Event event;
    event.set_sequence(42);
    event.mutable_planned()->set_iteration(3);
    event.mutable_planned()->set_author(author);
    event.mutable_planned()->mutable_change()->set_variable("THREADS");
    event.mutable_planned()->mutable_change()->set_from(128);
    event.mutable_planned()->mutable_change()->set_to(64);
    return event;
  }
  v1::Event Finished(v1::Verdict verdict) {
    v1::Event event;
    event.set_sequence(43);
    v1::Iteration& iteration = *event.mutable_finished()->mutable_iteration();
    iteration = campaigns_->iterations[1];
    iteration.set_number(3);
    iteration.set_verdict(verdict);
    return event;
  }
  Json Wait(double seconds) { return Ask("wait", {{"proposal", proposal_}, {"timeoutSeconds", seconds}}); }

  std::string proposal_;
};

TEST_F(WaitToolTest, ReturnsTheVerdictWhenItComes) {
  EXPECT_EQ(Wait(0)["status"], "queued");
  EXPECT_EQ(Wait(0)["done"], false);
  campaigns_->Add(Planned("tester"));
  v1::Progress progress;
  progress.set_iteration("campaigns/7/iterations/3");
  progress.set_text("validate at large (4 of 7)");
  campaigns_->Add(progress);
  const Json running = Wait(0.2);
  EXPECT_EQ(running["status"], "running");
  EXPECT_EQ(running["iteration"], 3);
  EXPECT_EQ(running["progress"], "validate at large (4 of 7)");
  std::thread later([&] { campaigns_->Add(Finished(v1::KEPT)); });
  const Json kept = Wait(30);
  later.join();
  EXPECT_EQ(kept["done"], true);
  EXPECT_EQ(kept["status"], "kept");
  EXPECT_EQ(kept["result"]["iteration"], 3);
  EXPECT_EQ(kept["result"]["speedupOverParent"], 2);
  EXPECT_EQ(Wait(30)["status"], "kept") << "it may be asked again";
}

TEST_F(WaitToolTest, DoesNotTakeAnothersTrialForIts) {
  campaigns_->Add(Planned("pawl"));
  campaigns_->Add(Finished(v1::REVERTED));
  EXPECT_EQ(Wait(0.3)["status"], "queued");
}

// Three edits of one author may have one name.
TEST_F(WaitToolTest, TellsProposalsOfOneNameApart) {
  for (const bool numbered : {true, false}) {  // version 0.1.0 wrote no numbers
    SCOPED_TRACE(numbered);
    SetUp();
    campaigns_->campaign.set_last_sequence(40);
    std::vector<v1::Change> changes;
    std::vector<std::string> names;
    for (int i = 0; i < 3; ++i) {
      const std::string patch = absl::StrCat("--- a\n+++ b\n@@ -0,0 +1 @@\n+int ", i, ";\n");
      names.push_back(Ask("propose", {{"campaign", "7"}, {"name", "fix"}, {"patch", patch}})["proposal"]);
      changes.push_back(campaigns_->proposals().back().change());
      v1::Event event;
      event.set_sequence(41 + i);
      event.mutable_proposed()->set_author("tester");
      *event.mutable_proposed()->mutable_change() = changes.back();
      if (numbered) event.mutable_proposed()->set_number(i + 1);
      campaigns_->Add(event);
    }
    v1::Event dropped;
    dropped.set_sequence(44);
    dropped.mutable_dropped()->set_author("tester");
    dropped.mutable_dropped()->set_reason("it does not fit");
    *dropped.mutable_dropped()->mutable_change() = changes[0];
    if (numbered) dropped.mutable_dropped()->set_proposal(1);
    campaigns_->Add(dropped);
    for (int i = 1; i < 3; ++i) {
      v1::Event planned = Planned("tester");
      planned.set_sequence(44 + i);
      planned.mutable_planned()->set_iteration(i);
      *planned.mutable_planned()->mutable_change() = changes[i];
      if (numbered) planned.mutable_planned()->set_proposal(i + 1);
      campaigns_->Add(planned);
    }
    EXPECT_EQ(Ask("wait", {{"proposal", names[0]}, {"timeoutSeconds", 0.2}})["status"], "dropped");
    EXPECT_EQ(Ask("wait", {{"proposal", names[1]}, {"timeoutSeconds", 0.2}})["iteration"], 1);
    EXPECT_EQ(Ask("wait", {{"proposal", names[2]}, {"timeoutSeconds", 0.2}})["iteration"], 2);
  }
}

// Pawl may choose by itself what waits as a proposal.
TEST_F(WaitToolTest, FindsItsTrialAlsoWhereAnotherChoseIt) {
  v1::Event proposed;
  proposed.set_sequence(41);
  proposed.mutable_proposed()->set_author("tester");
  proposed.mutable_proposed()->set_number(1);
  proposed.mutable_proposed()->mutable_change()->set_variable("THREADS");
  proposed.mutable_proposed()->mutable_change()->set_to(32);
  proposal_ = Ask("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 32}})["proposal"];
  campaigns_->Add(proposed);
  v1::Event planned = Planned("pawl");
  planned.mutable_planned()->mutable_change()->set_to(32);
  planned.mutable_planned()->set_proposal(1);
  campaigns_->Add(planned);
  EXPECT_EQ(Wait(0.2)["iteration"], 3);
}

TEST_F(WaitToolTest, SaysThatAProposalWasDroppedOrTheCampaignEnded) {
  v1::Event ended;
  ended.set_sequence(50);
  ended.mutable_ended()->set_message("goal reached");
  campaigns_->Add(ended);
  EXPECT_EQ(Wait(30)["status"], "ended");
  EXPECT_EQ(Wait(30)["reason"], "goal reached");
  v1::Event dropped;
  dropped.set_sequence(49);
  dropped.mutable_dropped()->set_author("tester");
  dropped.mutable_dropped()->set_reason("this variant was already tried");
  *dropped.mutable_dropped()->mutable_change() = campaigns_->proposals()[0].change();
  SetUp();
  campaigns_->Add(dropped);
  EXPECT_EQ(Wait(30)["status"], "dropped");
  EXPECT_EQ(Wait(30)["reason"], "this variant was already tried");
}

TEST_F(WaitToolTest, EndsAtOnceWhenItIsCancelledAndForAProposalThatIsNone) {
  EXPECT_THAT(Refused("wait", {{"proposal", "campaigns/7/proposals/40-000000000000"}}), HasSubstr("no such proposal"));
  cancellation_.Cancel();
  EXPECT_THAT(Refused("wait", {{"proposal", proposal_}}), HasSubstr("the call was cancelled"));
}

// What was proposed as the start is planned as iteration 0, and judged with another number where it is rejected.
TEST_F(WaitToolTest, FollowsTheProposalOfAStart) {
  v1::Event planned = Planned("tester");
  planned.mutable_planned()->set_iteration(0);
  planned.mutable_planned()->set_trial(5);
  planned.mutable_planned()->set_bundle_hash("abc");
  campaigns_->Add(planned);
  EXPECT_EQ(Wait(0.2)["iteration"], 0);
  v1::Event finished = Finished(v1::REJECTED);
  finished.mutable_finished()->set_trial(5);
  campaigns_->Add(finished);
  const Json rejected = Wait(30);
  EXPECT_EQ(rejected["status"], "rejected");
  EXPECT_EQ(rejected["result"]["iteration"], 3);
}

TEST_F(WaitToolTest, IsReadyWhereAContractAloneWaitsForItsStart) {
  campaigns_->campaign.clear_best();
  campaigns_->campaign.set_waiting_for(v1::WAITING_FOR_PROPOSAL);
  EXPECT_EQ(Ask("wait", {{"campaign", "7"}})["status"], "ready");
}

TEST_F(WaitToolTest, WaitsForTheStartWithoutAProposal) {
  const Json ready = Ask("wait", {{"campaign", "7"}});
  EXPECT_EQ(ready["status"], "ready");
  EXPECT_EQ(ready["campaign"]["best"], 1);
  campaigns_->campaign.clear_best();
  const Json starting = Ask("wait", {{"campaign", "7"}, {"timeoutSeconds", 0.1}});
  EXPECT_EQ(starting["status"], "starting");
  EXPECT_EQ(starting["done"], false);
  campaigns_->campaign.mutable_end_time()->set_seconds(1);
  EXPECT_EQ(Ask("wait", {{"campaign", "7"}})["status"], "ended");
  EXPECT_THAT(Refused("wait", Json::object()), HasSubstr("missing: campaign"));
  EXPECT_THAT(Refused("wait", {{"campaign", "7"}, {"timeoutSeconds", 46}}), HasSubstr("at most 45"));
}

TEST_F(ToolsTest, ExplainHasTheReasonAndTheMetricsThatMoved) {
  const Json kept = Ask("explain", {{"campaign", "7"}, {"iteration", 1}});
  EXPECT_EQ(kept["interval"]["speedupLow"], 1.822);
  EXPECT_EQ(kept["metrics"][0]["metric"], "waves");
  EXPECT_EQ(kept["metrics"][0]["ratio"], 3);
  const Json rejected = Ask("explain", {{"campaign", "7"}, {"iteration", 2}});
  EXPECT_EQ(rejected["verdict"], "rejected");
  EXPECT_THAT(rejected["patch"].get<std::string>(), HasSubstr("+++ b/saxpy.cu"));
  EXPECT_EQ(rejected["uri"], "pawl://campaigns/7/iterations/2");
}

TEST_F(ToolsTest, HistoryFiltersAndPages) {
  EXPECT_EQ(Ask("history", {{"campaign", "7"}})["iterations"].size(), 3u);
  const Json rejected =
      Ask("history", {{"campaign", "7"}, {"verdict", "rejected"}, {"order", "speedup"}})["iterations"];
  ASSERT_EQ(rejected.size(), 1u);
  EXPECT_EQ(rejected[0]["iteration"], 2);
  EXPECT_EQ(Ask("history", {{"campaign", "7"}, {"pageSize", 1}})["iterations"].size(), 1u);
  EXPECT_THAT(Refused("history", {{"campaign", "7"}, {"pageSize", 51}}), HasSubstr("at most 50"));
}

TEST_F(ToolsTest, DiffComparesIterationsAndBestVariants) {
  const Json diff = Ask("diff", {{"campaign", "7"}, {"a", 0}, {"b", 1}});
  EXPECT_EQ(diff["timeRatio"], 2);
  EXPECT_EQ(diff["variables"], Json::array({{{"variable", "THREADS"}, {"a", 64}, {"b", 128}}}));
  EXPECT_EQ(Ask("diff", {{"campaign", "7"}, {"otherCampaign", "7"}})["timeRatio"], 1);
  EXPECT_THAT(Refused("diff", {{"campaign", "7"}, {"a", 0}}), HasSubstr("missing: b"));
  EXPECT_THAT(Refused("diff", {{"campaign", "7"}, {"a", 0}, {"otherCampaign", "7"}}), HasSubstr("omit a and b"));
}

TEST_F(ToolsTest, BestHasTheSourcePageByPage) {
  const Json whole = Ask("best", {{"campaign", "7"}});
  EXPECT_EQ(whole["source"]["text"], campaigns_->bundle.source().text());
  EXPECT_FALSE(whole["source"].contains("nextLine"));
  const Json second = Ask("best", {{"campaign", "7"}, {"fromLine", 2}, {"toLine", 2}});
  EXPECT_EQ(second["source"]["text"], "// line 2\n");
  EXPECT_EQ(second["source"]["nextLine"], 3);
  EXPECT_EQ(Ask("best", {{"campaign", "7"}, {"fromLine", 99}})["source"]["text"], "");
  // A long source, whose quotes take two characters each in JSON.
  campaigns_->iterations[1].set_patched_source_hash("patched");
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&campaigns_->patched_source, "\"\"\"\"\"\"\"\"\"\"\"\"\"\" ", i, "\n");
  std::string read;
  int pages = 0;
  for (int line = 1; line <= 3000; ++pages) {
    const Json page = Ask("best", {{"campaign", "7"}, {"fromLine", line}});
    ASSERT_EQ(page["source"]["fromLine"], line);
    read += page["source"]["text"].get<std::string>();
    line = page["source"].contains("nextLine") ? page["source"]["nextLine"].get<int>() : 3001;
  }
  EXPECT_EQ(read, campaigns_->patched_source);
  EXPECT_GT(pages, 1);
}

TEST_F(ToolsTest, SubmitAndCheckTakeAFolderOrFiles) {
  const Json submitted = Ask("submit", {{"bundle", "saxpy"},
                                        {"size", "tiny"},
                                        {"goal", 2},
                                        {"iterations", 5},
                                        {"chooser", "outside"},
                                        {"waitForProposalSeconds", 60},
                                        {"gpu", "H200"}});
  EXPECT_EQ(submitted["campaign"]["campaign"], "campaigns/7");
  Ask("submit", {{"files", {{"kernel.toml", "name = \"saxpy\""}}}});
  ASSERT_EQ(campaigns_->submits().size(), 2u);
  const v1::SubmitCampaignRequest request = campaigns_->submits()[0];
  EXPECT_EQ(request.spec().goal().size(), "tiny");
  EXPECT_EQ(request.spec().goal().speedup(), 2);
  EXPECT_EQ(request.spec().budget().iterations(), 5);
  EXPECT_EQ(request.spec().chooser().kind(), v1::CHOOSER_KIND_OUTSIDE);
  EXPECT_EQ(request.spec().chooser().wait_seconds(), 60);
  EXPECT_EQ(request.author(), "tester");
  EXPECT_EQ(campaigns_->submits()[1].spec().goal().size(), "main") << "the bundle's goal";
  EXPECT_THAT(Refused("submit", {{"bundle", "saxpy"}, {"size", "tinny"}}), HasSubstr("did you mean tiny?"));
  EXPECT_THAT(Refused("submit", Json::object()), HasSubstr("either bundle"));
  EXPECT_THAT(Refused("submit", {{"bundle", "saxpy"}, {"files", {{"a", "b"}}}}), HasSubstr("either bundle"));
  const Json checked = Ask("check", {{"bundle", "saxpy"}, {"gpu", "h200"}});
  EXPECT_EQ(checked["problems"][0], "kernel.toml:3: unknown key");
  EXPECT_EQ(checked["gpus"][0]["name"], "h200");
  EXPECT_EQ(checked["launches"][0], "main: saxpy grid 16 x 1 x 1, block 64 x 1 x 1, shared 0 bytes");
}

TEST_F(ToolsTest, WhoMayOnlyReadChangesNothing) {
  for (const char* tool : {"submit", "check"}) {
    EXPECT_THAT(Refused(tool, {{"bundle", "saxpy"}}, {.may_submit = false}), HasSubstr("the role submit"));
  }
  EXPECT_THAT(Refused("propose", {{"campaign", "7"}, {"variable", "THREADS"}, {"value", 64}}, {.may_submit = false}),
              HasSubstr("the role submit"));
  EXPECT_TRUE(campaigns_->proposals().empty());
  EXPECT_TRUE(Call("situation", {{"campaign", "7"}}, {.may_submit = false}).contains("structuredContent"));
}

TEST_F(ToolsTest, BoundToOneCampaignItShowsNoOther) {
  Open({.version = "1", .author = "codex 2", .campaign = "campaigns/7"});
  EXPECT_EQ(Ask("situation", Json::object())["campaign"], "campaigns/7");
  EXPECT_EQ(Ask("campaigns", Json::object())["campaigns"].size(), 1u);
  Ask("propose", {{"variable", "THREADS"}, {"value", 64}});
  EXPECT_EQ(campaigns_->proposals()[0].author(), "codex 2");
  for (const char* tool : {"situation", "campaigns", "history", "best", "wait"}) {
    EXPECT_THAT(Refused(tool, {{"campaign", "6"}}), HasSubstr("for campaigns/7 only")) << tool;
  }
  EXPECT_THAT(Refused("diff", {{"otherCampaign", "6"}}), HasSubstr("for campaigns/7 only"));
  EXPECT_THAT(Refused("submit", {{"bundle", "saxpy"}}), HasSubstr("for campaigns/7 only"));
  EXPECT_THAT(Refused("wait", {{"proposal", "campaigns/6/proposals/1-0123456789ab"}}), HasSubstr("campaigns/7 only"));
  EXPECT_FALSE(features_->ReadResource("pawl://campaigns/6/source").ok());
  EXPECT_TRUE(features_->ReadResource("pawl://campaigns/7/source").ok());
  EXPECT_THAT(features_->instructions(), HasSubstr("campaigns/7"));
}

TEST_F(ToolsTest, ResourcesAreReadByTheirAddressesInWholeOrInPart) {
  const auto text = [&](const std::string& uri) {
    absl::StatusOr<McpCached> read = features_->ReadResource(uri);
    EXPECT_TRUE(read.ok()) << uri << " " << read.status();
    return read.ok() ? read->result["contents"][0]["text"].get<std::string>() : "";
  };
  EXPECT_THAT(text("pawl://guide"), HasSubstr("name: pawl"));
  EXPECT_EQ(text("pawl://campaigns/7/source"), campaigns_->bundle.source().text());
  EXPECT_EQ(text("pawl://campaigns/7/source?lines=2-3"), "// line 2\n// line 3\n");
  EXPECT_EQ(text("pawl://campaigns/7/files/saxpy.cu?lines=2-3"), "// line 2\n// line 3\n");
  EXPECT_THAT(text("pawl://campaigns/7/files/kernel.toml"), HasSubstr("[[launch]]\nentry = \"saxpy\"\n"));
  EXPECT_EQ(text("pawl://campaigns/7/iterations/0/source"), campaigns_->bundle.source().text());
  EXPECT_THAT(text("pawl://campaigns/7/iterations/1"), HasSubstr("\"speedupOverParent\""));
  EXPECT_THAT(text("pawl://campaigns/7/bundle"), HasSubstr("saxpy"));
  EXPECT_EQ(text("pawl://campaigns/7/report"), "# Report\n");
  EXPECT_THAT(text("pawl://campaigns/7"), HasSubstr("RUNNING"));
  for (const char* missing :
       {"", "pawl://", "pawl://nothing", "file:///etc/passwd", "pawl://campaigns", "pawl://campaigns/",
        "pawl://campaigns/8", "pawl://campaigns/x/source", "pawl://campaigns/7/nothing",
        "pawl://campaigns/7/iterations/99", "pawl://campaigns/7/iterations/x", "pawl://campaigns/7/source/more",
        "pawl://campaigns/7/files/reference.cu", "pawl://campaigns/7/source?lines=9-10",
        "pawl://campaigns/../../etc/passwd"}) {
    EXPECT_TRUE(absl::IsNotFound(features_->ReadResource(missing).status())) << missing;
  }
  for (const char* wrong : {"pawl://campaigns/7/source?lines=0-1", "pawl://campaigns/7/source?lines=3-2",
                            "pawl://campaigns/7/source?from=1", "pawl://campaigns/7/source?lines=1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(features_->ReadResource(wrong).status())) << wrong;
  }
  absl::StatusOr<McpCached> list = features_->ListResources("");
  ASSERT_TRUE(list.ok());
  for (const Json& resource : list->result["resources"]) text(resource["uri"]);
  EXPECT_EQ(list->result["resources"].size(), 6u);
  EXPECT_TRUE(absl::IsInvalidArgument(features_->ListResources("elsewhere").status()));
}

TEST_F(ToolsTest, PromptsNameTheirSubject) {
  const auto text = [&](const char* name, Json arguments) {
    absl::StatusOr<Json> prompt = features_->GetPrompt(name, arguments);
    return prompt.ok() ? (*prompt)["messages"][0]["content"]["text"].get<std::string>()
                       : std::string(prompt.status().message());
  };
  EXPECT_THAT(text("optimise", {{"campaign", "7"}}), HasSubstr("the kernel of campaigns/7 faster"));
  EXPECT_THAT(text("bring_kernel_in", {{"kernel", "norm.cu"}}), HasSubstr("norm.cu"));
  EXPECT_THAT(text("optimise", Json::object()), HasSubstr("missing: campaign"));
  EXPECT_THAT(text("optimise", {{"campaign", "x"}}), HasSubstr("campaigns/7"));
  EXPECT_THAT(features_->Complete("campaign", ""), ElementsAre("7"));
  EXPECT_THAT(features_->Complete("campaign", "8"), ElementsAre());
}

TEST(BundleFolderTest, HoldsTheFilesAndGoesWithItsObject) {
  std::filesystem::path path;
  {
    absl::StatusOr<std::unique_ptr<GivenBundle>> folder =
        GivenBundle::Write({{"kernel.toml", "a"}, {"include/tile.cuh", "b"}});
    ASSERT_TRUE(folder.ok()) << folder.status();
    path = (*folder)->path();
    EXPECT_EQ(std::filesystem::file_size(path / "include/tile.cuh"), 1u);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(BundleFolderTest, RefusesPathsThatLeaveIt) {
  for (const char* bad :
       {"", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", ".", "a/./b", "a\nb", "a b", "a\\b", "~/x"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(GivenBundle::Write({{bad, "x"}}).status())) << bad;
  }
  std::map<std::string, std::string> many;
  for (int i = 0; i < 201; ++i) many[absl::StrCat("f", i)] = "";
  EXPECT_TRUE(absl::IsInvalidArgument(GivenBundle::Write(many).status()));
  EXPECT_FALSE(GivenBundle::Write({{"a", "x"}, {"a/b", "y"}}).ok());
}

}  // namespace
}  // namespace pawl
