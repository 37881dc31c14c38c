// The dispatcher, for both eras of the protocol.
#include "agent/mcp/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/agent/suite_features.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

constexpr char kVersionKey[] = "io.modelcontextprotocol/protocolVersion";
constexpr char kCapabilitiesKey[] = "io.modelcontextprotocol/clientCapabilities";

RpcMessage Asked(const std::string& method, Json params = Json::object()) {
  RpcMessage message;
  message.id = 1;
  message.method = method;
  message.params = std::move(params);
  return message;
}

Json WithMeta(Json params = Json::object()) {
  params["_meta"][kVersionKey] = kStatelessVersion;
  params["_meta"][kCapabilitiesKey] = Json::object();
  return params;
}

class McpServerTest : public testing::Test {
 protected:
  Json InSession(const std::string& method, Json params = Json::object()) {
    McpServer::Surroundings around;
    around.session = &session_;
    around.notify = [this](const Json& notification) { notifications_.push_back(notification); };
    const RpcMessage message = Asked(method, std::move(params));
    EXPECT_EQ(EraOf(message), McpEra::kSession);
    return server_.Answer(message, McpEra::kSession, around).message;
  }
  void Initialize(const std::string& version = kNewestSessionVersion) {
    const Json reply = InSession("initialize", {{"protocolVersion", version},
                                                {"capabilities", Json::object()},
                                                {"clientInfo", {{"name", "tester"}, {"version", "1"}}}});
    ASSERT_TRUE(reply.contains("result")) << reply;
  }
  Json Stateless(const std::string& method, Json params = Json::object(), int status = 200) {
    McpServer::Surroundings around;
    around.notify = [this](const Json& notification) { notifications_.push_back(notification); };
    const RpcMessage message = Asked(method, WithMeta(std::move(params)));
    EXPECT_EQ(EraOf(message), McpEra::kStateless);
    const McpAnswer answer = server_.Answer(message, McpEra::kStateless, around);
    EXPECT_EQ(answer.http_status, status) << method;
    return answer.message;
  }

  const SuiteFeatures features_;
  const McpServer server_{features_};
  McpSession session_;
  std::vector<Json> notifications_;
};

TEST_F(McpServerTest, NegotiatesTheVersionOfASession) {
  for (const char* version : {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}) {
    const Json reply = InSession("initialize", {{"protocolVersion", version}});
    EXPECT_EQ(reply["result"]["protocolVersion"], version);
  }
  for (const char* version : {"2026-07-28", "1900-01-01", "nonsense"}) {
    const Json reply = InSession("initialize", {{"protocolVersion", version}});
    EXPECT_EQ(reply["result"]["protocolVersion"], "2025-11-25") << version;
  }
  EXPECT_EQ(InSession("initialize")["error"]["code"], kInvalidParams);
  const Json result = InSession("initialize", {{"protocolVersion", "2025-11-25"}})["result"];
  EXPECT_EQ(result["serverInfo"], (Json{{"name", "suite"}, {"version", "1.0.0"}}));
  EXPECT_EQ(result["instructions"], "for tests");
  EXPECT_TRUE(result["capabilities"].contains("tools"));
  EXPECT_FALSE(result.contains("resultType"));
}

TEST_F(McpServerTest, WantsInitializeFirstButForPing) {
  EXPECT_EQ(InSession("ping")["result"], Json::object());
  const Json refused = InSession("tools/list");
  EXPECT_EQ(refused["error"]["code"], kInvalidRequest);
  EXPECT_THAT(refused["error"]["message"].get<std::string>(), HasSubstr("initialize"));
  Initialize();
  EXPECT_TRUE(InSession("tools/list").contains("result"));
}

TEST_F(McpServerTest, DiscoversWithoutASession) {
  const Json result = Stateless("server/discover")["result"];
  EXPECT_EQ(result["resultType"], "complete");
  EXPECT_EQ(result["supportedVersions"], Json::array({"2026-07-28"}));
  EXPECT_EQ(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "suite");
  EXPECT_GE(result["ttlMs"].get<int>(), 0);
  EXPECT_EQ(result["cacheScope"], "public");
  for (const char* capability : {"tools", "resources", "prompts", "completions"}) {
    EXPECT_TRUE(result["capabilities"].contains(capability)) << capability;
  }
}

TEST_F(McpServerTest, WantsTheMetadataOfEachStatelessRequest) {
  const auto answer = [&](Json meta) {
    return server_.Answer(Asked("server/discover", {{"_meta", std::move(meta)}}), McpEra::kStateless, {});
  };
  for (const Json& meta :
       {Json::object(), Json{{kVersionKey, kStatelessVersion}}, Json{{kCapabilitiesKey, Json::object()}},
        Json{{kVersionKey, 7}, {kCapabilitiesKey, Json::object()}},
        Json{{kVersionKey, kStatelessVersion}, {kCapabilitiesKey, 7}}}) {
    const McpAnswer refused = answer(meta);
    EXPECT_EQ(refused.message["error"]["code"], kInvalidParams) << meta;
    EXPECT_EQ(refused.http_status, 400);
  }
  const McpAnswer other = answer({{kVersionKey, "2031-01-01"}, {kCapabilitiesKey, Json::object()}});
  EXPECT_EQ(other.message["error"]["code"], kUnsupportedVersion);
  EXPECT_EQ(other.message["error"]["data"], (Json{{"supported", {"2026-07-28"}}, {"requested", "2031-01-01"}}));
  EXPECT_EQ(other.http_status, 400);
}

TEST_F(McpServerTest, HasNoMethodsOfTheOtherEra) {
  for (const char* method : {"initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"}) {
    EXPECT_EQ(Stateless(method, Json::object(), 404)["error"]["code"], kMethodNotFound) << method;
  }
  Initialize();
  for (const char* method : {"logging/setLevel", "resources/subscribe", "sampling/createMessage", "unknown/method"}) {
    EXPECT_EQ(InSession(method)["error"]["code"], kMethodNotFound) << method;
  }
}

TEST_F(McpServerTest, ListsWithHintsForCachesInTheStatelessEraOnly) {
  Initialize();
  for (const char* method : {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
    Json stateless = Stateless(method)["result"];
    EXPECT_TRUE(stateless["ttlMs"].is_number_integer()) << method;
    EXPECT_TRUE(stateless["cacheScope"] == "public" || stateless["cacheScope"] == "private") << method;
    EXPECT_EQ(stateless["resultType"], "complete");
    Json in_session = InSession(method)["result"];
    for (const char* key : {"ttlMs", "cacheScope", "resultType", "_meta"}) EXPECT_FALSE(in_session.contains(key));
    for (const char* key : {"ttlMs", "cacheScope", "resultType", "_meta"}) stateless.erase(key);
    EXPECT_EQ(stateless, in_session) << method;
  }
  EXPECT_EQ(Stateless("resources/list", {{"cursor", "elsewhere"}})["error"]["code"], kInvalidParams);
  EXPECT_EQ(Stateless("resources/list", {{"cursor", 7}})["error"]["code"], kInvalidParams);
  EXPECT_EQ(Stateless("tools/list", {{"cursor", "elsewhere"}})["error"]["code"], kInvalidParams);
}

TEST_F(McpServerTest, CallsTools) {
  Initialize();
  EXPECT_EQ(InSession("tools/call", {{"name", "test_simple_text"}})["result"]["content"][0]["text"],
            "This is a simple text response for testing.");
  const Json failed =
      Stateless("tools/call", {{"name", "test_error_handling"}, {"arguments", Json::object()}})["result"];
  EXPECT_EQ(failed["isError"], true);
  EXPECT_EQ(failed["resultType"], "complete");
}

TEST_F(McpServerTest, TellsTheModelAboutWrongArgumentsAndTheClientAboutWrongCalls) {
  const Json wrong = Stateless("tools/call", {{"name", "test_simple_text"}, {"arguments", {{"x", 1}}}});
  EXPECT_EQ(wrong["result"]["isError"], true);
  EXPECT_THAT(wrong["result"]["content"][0]["text"].get<std::string>(), HasSubstr("unknown: x"));
  for (Json params : {Json::object(), Json{{"name", 7}}, Json{{"name", "test_simple_txt"}},
                      Json{{"name", "test_simple_text"}, {"arguments", Json::array()}}}) {
    EXPECT_EQ(Stateless("tools/call", params)["error"]["code"], kInvalidParams) << params;
  }
  EXPECT_THAT(Stateless("tools/call", {{"name", "test_simple_txt"}})["error"]["message"].get<std::string>(),
              HasSubstr("did you mean test_simple_text?"));
}

TEST_F(McpServerTest, ReportsProgressWhereATokenAsksForIt) {
  Stateless("tools/call", {{"name", "test_tool_with_progress"}});
  EXPECT_TRUE(notifications_.empty());
  Stateless("tools/call", {{"name", "test_tool_with_progress"}, {"_meta", {{"progressToken", Json::array({1})}}}});
  EXPECT_TRUE(notifications_.empty());
  Stateless("tools/call", {{"name", "test_tool_with_progress"}, {"_meta", {{"progressToken", "mine"}}}});
  ASSERT_EQ(notifications_.size(), 3u) << "the same figure twice is told once";
  double last = -1;
  for (const Json& each : notifications_) {
    EXPECT_EQ(each["method"], "notifications/progress");
    EXPECT_EQ(each["params"]["progressToken"], "mine");
    EXPECT_GT(each["params"]["progress"].get<double>(), last);
    last = each["params"]["progress"].get<double>();
    EXPECT_FALSE(each.contains("id"));
  }
}

TEST_F(McpServerTest, ReadsResourcesAndNamesMissingOnesByTheCodeOfTheEra) {
  Initialize();
  EXPECT_EQ(InSession("resources/read", {{"uri", "test://static-text"}})["result"]["contents"][0]["text"],
            "This is the content of the static text resource.");
  EXPECT_EQ(Stateless("resources/read", {{"uri", "test://template/5/data"}})["result"]["ttlMs"], 0);
  EXPECT_EQ(InSession("resources/read", {{"uri", "test://nothing"}})["error"]["code"], kResourceNotFound);
  const Json missing = Stateless("resources/read", {{"uri", "test://nothing"}});
  EXPECT_EQ(missing["error"]["code"], kInvalidParams);
  EXPECT_EQ(missing["error"]["data"]["uri"], "test://nothing");
  EXPECT_EQ(Stateless("resources/read")["error"]["code"], kInvalidParams);
}

TEST_F(McpServerTest, GetsPromptsAndCompletesTheirArguments) {
  EXPECT_EQ(
      Stateless("prompts/get",
                {{"name", "test_prompt_with_arguments"},
                 {"arguments", {{"arg1", "hello"}, {"arg2", "world"}}}})["result"]["messages"][0]["content"]["text"],
      "Prompt with arguments: arg1='hello', arg2='world'");
  EXPECT_EQ(Stateless("prompts/get", {{"name", "nothing"}})["error"]["code"], kInvalidParams);
  EXPECT_EQ(Stateless("prompts/get", {{"name", "test_simple_prompt"}, {"arguments", {{"a", 1}}}})["error"]["code"],
            kInvalidParams);
  const Json prompt = {{"type", "ref/prompt"}, {"name", "test_prompt_with_arguments"}};
  const Json found =
      Stateless("completion/complete", {{"ref", prompt}, {"argument", {{"name", "arg1"}, {"value", "par"}}}});
  EXPECT_EQ(found["result"]["completion"], (Json{{"values", {"paris"}}, {"total", 1}, {"hasMore", false}}));
  const Json many =
      Stateless("completion/complete", {{"ref", prompt}, {"argument", {{"name", "many"}, {"value", "x"}}}});
  EXPECT_EQ(many["result"]["completion"]["values"].size(), 100u);
  EXPECT_EQ(many["result"]["completion"]["hasMore"], true);
  for (const Json& wrong :
       {Json::object(), Json{{"ref", {{"type", "ref/other"}}}}, Json{{"ref", prompt}},
        Json{{"ref", {{"type", "ref/prompt"}, {"name", "nothing"}}}, {"argument", {{"name", "a"}, {"value", ""}}}}}) {
    EXPECT_EQ(Stateless("completion/complete", wrong)["error"]["code"], kInvalidParams) << wrong;
  }
}

// The author of what it proposes: a protobuf string, in which half a character can't be read.
TEST_F(McpServerTest, ShortensAClientsNameBetweenCharacters) {
  class Named final : public SuiteFeatures {
   public:
    McpToolResult CallTool(const std::string& name, const Json& arguments, const McpCall& call) const override {
      client = call.caller.client;
      return SuiteFeatures::CallTool(name, arguments, call);
    }
    mutable std::string client;
  };
  const Named features;
  const McpServer server(features);
  const std::string kept(99, 'a');
  const Json info = {{"name", kept + "\u00e9"}, {"version", "1"}};
  McpServer::Surroundings around;
  around.session = &session_;
  server.Answer(Asked("initialize", {{"protocolVersion", "2025-11-25"}, {"clientInfo", info}}), McpEra::kSession,
                around);
  EXPECT_EQ(session_.client(), kept);
  Json params = WithMeta({{"name", "test_simple_text"}});
  params["_meta"]["io.modelcontextprotocol/clientInfo"] = info;
  server.Answer(Asked("tools/call", params), McpEra::kStateless, {});
  EXPECT_EQ(features.client, kept);
}

TEST_F(McpServerTest, LimitsCallsPerSecond) {
  std::chrono::steady_clock::time_point now;
  McpServerOptions options;
  options.clock = [&] { return now; };
  const McpServer server(features_, options);
  const RpcMessage message = Asked("server/discover", WithMeta());
  int answered = 0;
  for (int second = 0; second < 3; ++second) {
    for (int i = 0; i < 10'000; ++i) {
      const McpAnswer answer = server.Answer(message, McpEra::kStateless, {});
      if (answer.message.contains("result")) {
        ++answered;
      } else {
        ASSERT_EQ(answer.message["error"]["code"], kTooManyRequests);
        ASSERT_EQ(answer.http_status, 429);
      }
    }
    now += std::chrono::seconds(1);
  }
  EXPECT_EQ(answered, 400) << "a burst of 200, then 100 a second";
}

}  // namespace
}  // namespace pawl
