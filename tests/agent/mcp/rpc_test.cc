#include "agent/mcp/rpc.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "agent/mcp/rate_limit.h"
#include "agent/mcp/schema.h"
#include "agent/mcp/sessions.h"

namespace pawl {
namespace {

using Kind = RpcMessage::Kind;

TEST(RpcTest, TellsRequestsNotificationsAndResponsesApart) {
  const RpcReading request = ReadRpcMessage(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}})");
  ASSERT_TRUE(request.message);
  EXPECT_EQ(request.message->kind, Kind::kRequest);
  EXPECT_EQ(request.message->id, "a");
  EXPECT_EQ(request.message->params["x"], 1);
  EXPECT_EQ(ReadRpcMessage(R"({"jsonrpc":"2.0","method":"notifications/initialized"})").message->kind,
            Kind::kNotification);
  EXPECT_EQ(ReadRpcMessage(R"({"jsonrpc":"2.0","id":1,"result":{}})").message->kind, Kind::kResponse);
}

// Of the params.
std::string WithMembers(int count) {
  std::string text = R"({"jsonrpc":"2.0","id":5,"method":"ping","params":{)";
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, "\":1");
  return absl::StrCat(text, "}}");
}

TEST(RpcTest, ReadsThousandsOfMembers) {
  const RpcReading reading = ReadRpcMessage(WithMembers(3'000));
  ASSERT_TRUE(reading.message);
  EXPECT_EQ(reading.message->params.size(), 3'000u);
}

TEST(RpcTest, RefusesWhatIsNoMessageAndKeepsTheIdItCouldRead) {
  struct Case {
    std::string text;
    int code;
    Json id;
  };
  const Case cases[] = {
      {"", kParseError, nullptr},
      {"{", kParseError, nullptr},
      {"\xff\xfe", kParseError, nullptr},
      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\"}", kParseError, nullptr},
      {"[]", kInvalidRequest, nullptr},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", kInvalidRequest, nullptr},
      {"7", kInvalidRequest, nullptr},
      {R"({"id":5,"method":"ping"})", kInvalidRequest, 5},
      {R"({"jsonrpc":"1.0","id":5,"method":"ping"})", kInvalidRequest, 5},
      {R"({"jsonrpc":"2.0","id":5})", kInvalidRequest, 5},
      {R"({"jsonrpc":"2.0","id":5,"method":7})", kInvalidRequest, 5},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", kInvalidRequest, nullptr},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", kInvalidRequest, nullptr},
      {R"({"jsonrpc":"2.0","id":[1],"method":"ping"})", kInvalidRequest, nullptr},
      {R"({"jsonrpc":"2.0","id":5,"method":"ping","params":[1]})", kInvalidRequest, 5},
      {std::string(100'000, '['), kInvalidRequest, nullptr},
      {R"({"jsonrpc":"2.0","id":5,"method":"x","params":{"a":)" + std::string(70, '[') + std::string(70, ']') + "}}",
       kInvalidRequest, nullptr},
      {std::string(kMostMessageBytes + 1, ' '), kInvalidRequest, nullptr},
      {WithMembers(400'000), kInvalidRequest, nullptr},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.text.substr(0, 100));
    const RpcReading reading = ReadRpcMessage(each.text);
    EXPECT_FALSE(reading.message);
    EXPECT_EQ(reading.error.code, each.code);
    EXPECT_NE(reading.error.message, "");
    EXPECT_EQ(reading.error.http_status, 400);
    EXPECT_EQ(reading.id, each.id);
    EXPECT_EQ(RpcErrorReply(reading.id, reading.error).contains("id"), !each.id.is_null());
  }
}

TEST(RpcTest, BracketsInTextsAreNoNesting) {
  const std::string text(1000, '{');
  EXPECT_TRUE(ReadRpcMessage(R"({"jsonrpc":"2.0","id":5,"method":"x","params":{"a":"\")" + text + "\"}}").message);
}

TEST(SchemaTest, NamesTheFirstMistake) {
  const Json schema = Json::parse(R"({
    "type": "object", "required": ["campaign"], "additionalProperties": false,
    "properties": {
      "campaign": {"type": "string", "minLength": 1, "maxLength": 5},
      "order": {"type": "string", "enum": ["newest", "oldest"]},
      "count": {"type": "integer", "minimum": 1, "maximum": 50},
      "files": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
      "list": {"type": "array", "items": {"type": ["number", "null"]}, "maxItems": 3}
    }})");
  const auto mistake = [&](const char* text) { return SchemaMistake(Json::parse(text), schema); };
  EXPECT_EQ(mistake(R"({"campaign":"7","count":50.0,"files":{"a":"b"},"list":[1,null]})"), "");
  EXPECT_EQ(mistake(R"({})"), "missing: campaign");
  EXPECT_EQ(mistake(R"({"campaign":7})"), "campaign: expected string, got number");
  EXPECT_EQ(mistake(R"({"campaign":""})"), "campaign: expected a string that is not empty");
  EXPECT_EQ(mistake(R"({"campaign":"123456"})"), "campaign: expected at most 5 bytes");
  EXPECT_EQ(mistake(R"({"campaign":"7","order":"any"})"), "order: expected newest, oldest");
  EXPECT_EQ(mistake(R"({"campaign":"7","count":0})"), "count: expected at least 1");
  EXPECT_EQ(mistake(R"({"campaign":"7","count":51})"), "count: expected at most 50");
  EXPECT_EQ(mistake(R"({"campaign":"7","count":1.5})"), "count: expected integer, got number");
  EXPECT_EQ(mistake(R"({"campaign":"7","files":{"a":1}})"), "files.a: expected string, got number");
  EXPECT_EQ(mistake(R"({"campaign":"7","files":{"a":"","b":"","c":""}})"), "files: expected at most 2 entries");
  EXPECT_EQ(mistake(R"({"campaign":"7","list":[1,"2"]})"), "list[1]: expected number or null, got string");
  EXPECT_EQ(mistake(R"({"campaign":"7","list":[1,1,1,1]})"), "list: expected at most 3 items");
  EXPECT_NE(mistake(R"({"campaign":"7","campain":"7"})").find("did you mean campaign?"), std::string::npos);
}

TEST(RateLimitTest, LetsABurstThroughAndThenSoManyASecond) {
  std::chrono::steady_clock::time_point now;
  RateLimit limit(10, 20, [&] { return now; });
  int passed = 0;
  for (int i = 0; i < 10'000; ++i) passed += limit.Take();
  EXPECT_EQ(passed, 20);
  now += std::chrono::milliseconds(500);
  passed = 0;
  for (int i = 0; i < 10'000; ++i) passed += limit.Take();
  EXPECT_EQ(passed, 5);
  now += std::chrono::hours(1);
  passed = 0;
  for (int i = 0; i < 10'000; ++i) passed += limit.Take();
  EXPECT_EQ(passed, 20);
}

TEST(SessionsTest, BelongToTheirOwnerAndAreForgottenAfterAnHour) {
  McpSessions sessions;
  McpSessions::Time now;
  const auto session = std::make_shared<McpSession>();
  const std::string id = sessions.Add("alice", session, now);
  EXPECT_EQ(id.size(), 32u);
  EXPECT_EQ(sessions.Find(id, "alice", now), session);
  EXPECT_EQ(sessions.Find(id, "bob", now), nullptr);
  EXPECT_EQ(sessions.Find("", "alice", now), nullptr);
  now += std::chrono::minutes(59);
  EXPECT_EQ(sessions.Find(id, "alice", now), session);
  now += std::chrono::minutes(61);
  EXPECT_EQ(sessions.Find(id, "alice", now), nullptr);
}

TEST(SessionsTest, AreLimitedAndTheOneUnusedForTheLongestGoesFirst) {
  McpSessions sessions;
  McpSessions::Time now;
  const auto first = std::make_shared<McpSession>();
  const auto cancellation = first->Begin(1);
  const std::string id = sessions.Add("alice", first, now);
  now += std::chrono::seconds(1);
  const std::string second = sessions.Add("alice", std::make_shared<McpSession>(), now);
  for (int i = 0; i < 999; ++i) {
    now += std::chrono::milliseconds(1);
    sessions.Add("bob", std::make_shared<McpSession>(), now);
  }
  EXPECT_EQ(sessions.Find(id, "alice", now), nullptr);
  EXPECT_TRUE(cancellation->cancelled());
  EXPECT_NE(sessions.Find(second, "alice", now), nullptr);
}

TEST(SessionsTest, EndCancelsWhatIsUnderWay) {
  McpSessions sessions;
  McpSessions::Time now;
  const auto session = std::make_shared<McpSession>();
  const std::string id = sessions.Add("alice", session, now);
  const auto cancellation = session->Begin("call");
  EXPECT_EQ(session->Begin("call"), nullptr) << "an id is used by one request at a time";
  EXPECT_FALSE(sessions.End(id, "bob"));
  EXPECT_FALSE(cancellation->cancelled());
  EXPECT_TRUE(sessions.End(id, "alice"));
  EXPECT_TRUE(cancellation->cancelled());
  EXPECT_EQ(sessions.Find(id, "alice", now), nullptr);
}

}  // namespace
}  // namespace pawl
