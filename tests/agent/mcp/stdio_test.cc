#include "agent/mcp/stdio.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "tests/agent/suite_features.h"

namespace pawl {
namespace {

// A client at the other ends of the server's pipes.
class McpStdioTest : public testing::Test {
 protected:
  McpStdioTest() {
    signal(SIGPIPE, SIG_IGN);
    EXPECT_EQ(pipe2(to_, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(from_, O_CLOEXEC), 0);
  }
  ~McpStdioTest() override {
    Hang();
    Join();
    for (int* fd : {&to_[0], &from_[0], &from_[1]}) Close(fd);
  }

  void Start(McpStdioOptions options = {}) {
    options.in = to_[0];
    options.out = from_[1];
    thread_ = std::thread([this, options] {
      status_ = ServeMcpStdio(server_, options);
      Close(&from_[1]);
    });
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  void Send(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t count = write(to_[1], text.data() + at, text.size() - at);
      ASSERT_GT(count, 0);
      at += static_cast<size_t>(count);
    }
  }
  void Ask(const Json& id, const std::string& method, Json params = Json::object()) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = kStatelessVersion;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Json::object();
    Send(JsonText({{"jsonrpc", "2.0"}, {"id", id}, {"method", method}, {"params", params}}) + "\n");
  }
  void Hang() { Close(&to_[1]); }
  void HangOutput() { Close(&from_[0]); }

  // The next message; null: there is none any more.
  Json Next() {
    while (read_.find('\n') == std::string::npos) {
      char block[4096];
      const ssize_t count = read(from_[0], block, sizeof block);
      if (count <= 0) return nullptr;
      read_.append(block, static_cast<size_t>(count));
    }
    const size_t end = read_.find('\n');
    Json message = Json::parse(read_.substr(0, end));
    read_.erase(0, end + 1);
    return message;
  }

  static void Close(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }

  const SuiteFeatures features_;
  const McpServer server_{features_};
  int to_[2], from_[2];
  std::string read_;
  std::thread thread_;
  absl::Status status_;
};

TEST_F(McpStdioTest, ServesBothErasThroughOnePipe) {
  Start();
  Ask(1, "server/discover");
  EXPECT_EQ(Next()["result"]["resultType"], "complete");
  Send("\n  \r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n");
  EXPECT_EQ(Next()["error"]["code"], kInvalidRequest) << "a session begins with initialize";
  Send(
      "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}\n"
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
      "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\"}\n");
  EXPECT_EQ(Next()["result"]["protocolVersion"], "2025-06-18");
  EXPECT_FALSE(Next()["result"].contains("resultType"));
  Ask(5, "tools/list");
  EXPECT_EQ(Next()["result"]["resultType"], "complete");
  Hang();
  Join();
  EXPECT_TRUE(status_.ok());
  EXPECT_TRUE(Next().is_null());
}

TEST_F(McpStdioTest, GoesOnAfterNonsenseAndAfterAMessageThatIsTooLong) {
  Start();
  Send("nonsense\n[]\n");
  EXPECT_EQ(Next()["error"]["code"], kParseError);
  EXPECT_EQ(Next()["error"]["code"], kInvalidRequest);
  std::thread sender([&] { Send(std::string(kMostMessageBytes + 100'000, 'x') + "\n"); });
  const Json refused = Next();
  sender.join();
  EXPECT_EQ(refused["error"]["code"], kInvalidRequest);
  EXPECT_FALSE(refused.contains("id"));
  Ask(7, "tools/call", {{"name", "test_simple_text"}});
  EXPECT_EQ(Next()["id"], 7);
}

TEST_F(McpStdioTest, AnswersOthersWhileACallTakesLongAndNothingOnceThatIsCancelled) {
  Start();
  Ask("slow", "tools/call", {{"name", "test_slow_tool"}, {"_meta", {{"progressToken", 1}}}});
  EXPECT_EQ(Next()["method"], "notifications/progress");
  Ask("slow", "tools/call", {{"name", "test_simple_text"}});
  EXPECT_EQ(Next()["error"]["code"], kInvalidRequest) << "its id is in use";
  Ask(2, "tools/call", {{"name", "test_simple_text"}});
  EXPECT_EQ(Next()["id"], 2);
  Send(
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"nobody's\"}}\n"
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}\n"
      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"slow\"}}\n");
  Ask(3, "tools/call", {{"name", "test_simple_text"}});
  EXPECT_EQ(Next()["id"], 3);
  Hang();
  Join();
  EXPECT_TRUE(Next().is_null()) << "a cancelled call has no reply";
}

TEST_F(McpStdioTest, AnswersWhatWasAskedBeforeTheClientClosedItsEnd) {
  Start();
  for (int i = 0; i < 20; ++i) Ask(i, "tools/call", {{"name", "test_simple_text"}});
  Ask("slow", "tools/call", {{"name", "test_slow_tool"}});
  Hang();
  std::set<int> answered;
  for (Json message = Next(); !message.is_null(); message = Next()) answered.insert(message["id"].get<int>());
  EXPECT_EQ(answered.size(), 20u);
}

TEST_F(McpStdioTest, AnswersALastMessageWithoutALineEnd) {
  Start();
  Send(JsonText({{"jsonrpc", "2.0"}, {"id", 7}, {"method", "ping"}}));
  Hang();
  EXPECT_EQ(Next()["id"], 7);
  EXPECT_TRUE(Next().is_null());
}

TEST_F(McpStdioTest, RefusesMoreThanWait) {
  McpStdioOptions options;
  options.threads = 2;
  options.waiting = 3;
  Start(options);
  for (int i = 0; i < 2; ++i) {
    Ask(i, "tools/call", {{"name", "test_slow_tool"}, {"_meta", {{"progressToken", i}}}});
    EXPECT_EQ(Next()["method"], "notifications/progress");
  }
  for (int i = 2; i < 6; ++i) Ask(i, "tools/call", {{"name", "test_slow_tool"}});
  const Json refused = Next();
  EXPECT_EQ(refused["id"], 5);
  EXPECT_EQ(refused["error"]["code"], kTooManyRequests);
  Ask(9, "server/discover");
  EXPECT_EQ(Next()["id"], 9) << "what takes no time is answered all the same";
}

TEST_F(McpStdioTest, EndsWhenItIsStoppedOrNobodyReads) {
  std::atomic<bool> stopped = false;
  McpStdioOptions options;
  options.stopped = [&] { return stopped.load(); };
  Start(options);
  Ask("slow", "tools/call", {{"name", "test_slow_tool"}});
  stopped = true;
  Join();
  EXPECT_TRUE(Next().is_null());
}

TEST_F(McpStdioTest, EndsWhenNobodyReads) {
  Start();
  HangOutput();
  Ask(1, "server/discover");
  Join();
  EXPECT_TRUE(status_.ok());
}

}  // namespace
}  // namespace pawl
