#include "agent/mcp/http.h"

#include <gtest/gtest.h>

#include <map>
#include <new>
#include <thread>

#include "tests/agent/suite_features.h"
#include "tests/instrumented.h"

namespace pawl {
namespace {

using Headers = std::map<std::string, std::string>;

class McpHttpTest : public testing::Test {
 protected:
  McpHttpReply Send(const std::string& method, const std::string& body, const Headers& headers,
                    const std::string& owner = "alice") {
    McpHttpRequest request;
    request.method = method;
    request.header = [&headers](const std::string& name) {
      const auto found = headers.find(name);
      return found == headers.end() ? "" : found->second;
    };
    request.body = body;
    request.owner = owner;
    return http_.Answer(request);
  }
  static std::string Body(const std::string& method, Json params = Json::object(), const Json& id = 1) {
    return JsonText({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", std::move(params)}});
  }
  static std::string Stateless(const std::string& method, Json params = Json::object()) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = kStatelessVersion;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Json::object();
    return Body(method, std::move(params));
  }
  static Headers For(const std::string& method, const std::string& name = "") {
    Headers headers = {{"mcp-protocol-version", kStatelessVersion},
                       {"mcp-method", method},
                       {"accept", "application/json, text/event-stream"}};
    if (!name.empty()) headers["mcp-name"] = name;
    return headers;
  }
  // Code of the error; 0: none.
  static int Code(const McpHttpReply& reply) {
    const Json message = Json::parse(reply.body, nullptr, false);
    return message.is_object() && message.contains("error") ? message["error"]["code"].get<int>() : 0;
  }
  std::string Initialize(const std::string& owner = "alice") {
    const McpHttpReply reply = Send("POST", Body("initialize", {{"protocolVersion", "2025-11-25"}}), {}, owner);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.headers.size(), 1u);
    EXPECT_EQ(reply.headers[0].first, "Mcp-Session-Id");
    return reply.headers[0].second;
  }
  static std::string All(McpHttpStream& stream) {
    std::string all, piece;
    while (stream.Next(&piece)) all += piece;
    return all + piece;
  }

  const SuiteFeatures features_;
  const McpServer server_{features_};
  McpHttp http_{server_};
};

TEST_F(McpHttpTest, ServesTheStatelessEraWithoutASession) {
  const McpHttpReply reply = Send("POST", Stateless("server/discover"), For("server/discover"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.headers.empty());
  EXPECT_EQ(Json::parse(reply.body)["result"]["resultType"], "complete");
  Headers with_session = For("tools/list");
  with_session["mcp-session-id"] = "of the other era";
  EXPECT_EQ(Send("POST", Stateless("tools/list"), with_session).status, 200) << "it is ignored";
}

TEST_F(McpHttpTest, WantsHeadersThatRepeatTheBody) {
  const auto refuse = [&](const std::string& body, const Headers& headers, int code, int status = 400) {
    const McpHttpReply reply = Send("POST", body, headers);
    EXPECT_EQ(reply.status, status) << body;
    EXPECT_EQ(Code(reply), code) << reply.body;
  };
  const std::string call = Stateless("tools/call", {{"name", "test_simple_text"}});
  Headers headers = For("tools/call", "test_simple_text");
  EXPECT_EQ(Send("POST", call, headers).status, 200);
  headers["mcp-name"] = "=?base64?dGVzdF9zaW1wbGVfdGV4dA==?=";
  EXPECT_EQ(Send("POST", call, headers).status, 200);
  for (const char* name : {"other", "TEST_SIMPLE_TEXT", "=?base64?!!!?=", "=?base64?dGVzdF9zaW1wbGVfdGV4dA?=", ""}) {
    headers["mcp-name"] = name;
    refuse(call, headers, kHeaderMismatch);
  }
  refuse(Stateless("tools/list"), For("TOOLS/LIST"), kHeaderMismatch);
  refuse(Stateless("tools/list"), For("prompts/list"), kHeaderMismatch);
  headers = For("tools/list");
  headers.erase("mcp-method");
  refuse(Stateless("tools/list"), headers, kHeaderMismatch);
  headers = For("tools/list");
  headers.erase("mcp-protocol-version");
  refuse(Stateless("tools/list"), headers, kHeaderMismatch);
  headers["mcp-protocol-version"] = "2025-11-25";
  refuse(Stateless("tools/list"), headers, kHeaderMismatch);
  refuse(Body("tools/list"), For("tools/list"), kInvalidParams);
  headers = For("server/discover");
  headers["mcp-protocol-version"] = "v999";
  refuse(Body("server/discover", {{"_meta",
                                   {{"io.modelcontextprotocol/protocolVersion", "v999"},
                                    {"io.modelcontextprotocol/clientCapabilities", Json::object()}}}}),
         headers, kUnsupportedVersion);
  refuse(Stateless("resources/read", {{"uri", "test://static-text"}}), For("resources/read", "test://other"),
         kHeaderMismatch);
  refuse(Stateless("unknown/method"), For("unknown/method"), kMethodNotFound, 404);
  refuse("{", For("tools/list"), kParseError);
  refuse(R"({"jsonrpc":"2.0","id":1,"result":{}})", For("tools/list"), kInvalidRequest);
}

TEST_F(McpHttpTest, KeepsSessionsApart) {
  const std::string id = Initialize();
  const Headers headers = {{"mcp-session-id", id}, {"mcp-protocol-version", "2025-11-25"}};
  EXPECT_EQ(Send("POST", Body("tools/list"), headers).status, 200);
  EXPECT_EQ(Send("POST", R"({"jsonrpc":"2.0","method":"notifications/initialized"})", headers).status, 202);
  EXPECT_EQ(Send("POST", R"({"jsonrpc":"2.0","id":1,"result":{}})", headers).status, 202);
  EXPECT_EQ(Send("POST", Body("tools/list"), headers, "mallory").status, 404);
  EXPECT_EQ(Send("POST", Body("tools/list"), {}).status, 400);
  EXPECT_EQ(Send("POST", Body("tools/list"), {{"mcp-session-id", "0"}}).status, 404);
  EXPECT_EQ(Send("DELETE", "", headers, "mallory").status, 404);
  EXPECT_EQ(Send("DELETE", "", headers).status, 204);
  EXPECT_EQ(Send("POST", Body("tools/list"), headers).status, 404);
  EXPECT_EQ(Send("DELETE", "", headers).status, 404);
  Headers unknown = headers;
  unknown["mcp-protocol-version"] = "v999";
  EXPECT_EQ(Send("POST", Body("tools/list"), unknown).status, 400);
}

TEST_F(McpHttpTest, HasNoStreamForGet) {
  const McpHttpReply reply = Send("GET", "", {{"accept", "text/event-stream"}});
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.headers[0], std::pair(std::string("Allow"), std::string("POST, DELETE")));
}

TEST_F(McpHttpTest, StreamsProgressAndThenTheReply) {
  const std::string body =
      Stateless("tools/call", {{"name", "test_tool_with_progress"}, {"_meta", {{"progressToken", 5}}}});
  McpHttpReply reply = Send("POST", body, For("tools/call", "test_tool_with_progress"));
  ASSERT_NE(reply.stream, nullptr);
  const std::string all = All(*reply.stream);
  size_t messages = 0;
  for (size_t at = all.find("data: "); at != std::string::npos; at = all.find("data: ", at + 1)) ++messages;
  EXPECT_EQ(messages, 4u) << all;
  const size_t last = all.rfind("data: ");
  EXPECT_EQ(Json::parse(all.substr(last + 6))["result"]["content"][0]["text"], "done");
  Headers plain = For("tools/call", "test_tool_with_progress");
  plain["accept"] = "application/json";
  reply = Send("POST", body, plain);
  EXPECT_EQ(reply.stream, nullptr) << "not every client takes streams";
  EXPECT_EQ(Json::parse(reply.body)["result"]["content"][0]["text"], "done");
}

TEST_F(McpHttpTest, CancelsWhatAClientLeaves) {
  McpHttpReply reply =
      Send("POST", Stateless("tools/call", {{"name", "test_slow_tool"}}), For("tools/call", "test_slow_tool"));
  ASSERT_NE(reply.stream, nullptr);
  const auto begun = std::chrono::steady_clock::now();
  std::string piece;
  EXPECT_TRUE(reply.stream->Next(&piece));
  reply.stream.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(5) * kSlowdown);
}

TEST_F(McpHttpTest, CancelsARequestOfASessionWithoutAReply) {
  const Headers headers = {{"mcp-session-id", Initialize()}, {"accept", "text/event-stream"}};
  McpHttpReply reply = Send("POST", Body("tools/call", {{"name", "test_slow_tool"}}, "call"), headers);
  ASSERT_NE(reply.stream, nullptr);
  EXPECT_EQ(Code(Send("POST", Body("ping", Json::object(), "call"), headers)), kInvalidRequest) << "its id is in use";
  EXPECT_EQ(
      Send("POST", R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"call"}})", headers)
          .status,
      202);
  EXPECT_EQ(All(*reply.stream).find("result"), std::string::npos);
}

// Its slow tool can't be begun, and the others fail.
class FailingFeatures final : public SuiteFeatures {
 public:
  McpToolResult CallTool(const std::string&, const Json&, const McpCall&) const override { throw std::bad_alloc(); }
  bool TakesLong(const std::string&) const override { throw std::bad_alloc(); }
};

TEST_F(McpHttpTest, GoesOnAfterCallsThatFail) {
  const FailingFeatures features;
  const McpServer server(features);
  McpHttp http(server);
  Headers headers = For("tools/call", "test_simple_text");
  McpHttpRequest request;
  request.method = "POST";
  request.header = [&headers](const std::string& name) { return headers[name]; };
  request.body = Stateless("tools/call", {{"name", "test_simple_text"}});
  for (int i = 0; i < 20; ++i) EXPECT_THROW(http.Answer(request), std::bad_alloc);
  headers["accept"] = "application/json";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Code(http.Answer(request)), kInternalError);
}

TEST_F(McpHttpTest, LimitsWhatRunsAtATime) {
  std::vector<McpHttpReply> running;
  for (int i = 0; i < 16; ++i) {
    running.push_back(
        Send("POST", Stateless("tools/call", {{"name", "test_slow_tool"}}), For("tools/call", "test_slow_tool")));
    ASSERT_NE(running.back().stream, nullptr);
  }
  const McpHttpReply refused = Send("POST", Stateless("tools/list"), For("tools/list"));
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Code(refused), kTooManyRequests);
  EXPECT_EQ(refused.headers[0].first, "Retry-After");
  running.clear();
  EXPECT_EQ(Send("POST", Stateless("tools/list"), For("tools/list")).status, 200);
}

}  // namespace
}  // namespace pawl
