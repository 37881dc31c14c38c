// `/mcp` as its clients reach it: through the dashboard's server, with its tokens and roles.
#include "orchestrator/http/mcp.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "agent/campaigns/grpc_campaigns.h"
#include "agent/tools/pawl_features.h"
#include "orchestrator/http/sent_bundles.h"
#include "orchestrator/http/server.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/running_service.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;

class HttpMcpTest : public testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    options.address = "0";
    options.mcp = std::make_shared<PawlFeatures>(OpenGrpcCampaigns(service_.channel()), std::make_unique<SentBundles>(),
                                                 PawlFeatures::Options{.version = "1"});
    server_ = HttpServer::Start(service_.channel(), options).value();
  }
  int port() const { return std::stoi(server_->url().substr(server_->url().rfind(':') + 1)); }

  static std::string Body(const std::string& method, Json params = Json::object()) {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = kStatelessVersion;
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = Json::object();
    return JsonText({{"jsonrpc", "2.0"}, {"id", 1}, {"method", method}, {"params", std::move(params)}});
  }
  static httplib::Headers For(const std::string& method, const std::string& name = "") {
    httplib::Headers headers = {{"MCP-Protocol-Version", kStatelessVersion},
                                {"Mcp-Method", method},
                                {"Accept", "application/json, text/event-stream"}};
    if (!name.empty()) headers.emplace("Mcp-Name", name);
    return headers;
  }
  httplib::Result Send(const std::string& method, const httplib::Headers& more = {}) {
    httplib::Client client("127.0.0.1", port());
    httplib::Headers headers = For(method);
    for (const auto& [name, value] : more) headers.emplace(name, value);
    return client.Post("/mcp", headers, Body(method), "application/json");
  }
  // The result of a tool; a stream's last message.
  Json Call(const std::string& tool, Json arguments, const std::string& token = "") {
    httplib::Client client("127.0.0.1", port());
    client.set_read_timeout(30);
    httplib::Headers headers = For("tools/call", tool);
    if (!token.empty()) headers.emplace("Authorization", "Bearer " + token);
    const auto reply = client.Post(
        "/mcp", headers, Body("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}}), "application/json");
    if (!reply) return nullptr;
    EXPECT_EQ(reply->status, 200) << reply->body;
    const size_t data = reply->body.rfind("data: ");
    return Json::parse(data == std::string::npos ? reply->body : reply->body.substr(data + 6))["result"];
  }
  // A campaign with a start.
  void Campaign() {
    service_.Submit();
    service_.Register("workers/a");
    const v1::LeaseTrialResponse leased = service_.Lease("workers/a");
    service_.Ask(service_.workers(), &v1::WorkerService::Stub::CompleteTrial,
                 RunningService::Result("workers/a", leased));
  }
  static Json TransposeFiles() {
    Json files = Json::object();
    const std::filesystem::path folder = std::filesystem::path(getenv("PAWL_SOURCE_DIR")) / "kernels/transpose";
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream in(entry.path());
      files[entry.path().filename().string()] =
          std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
    return files;
  }
  int Connect() const {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }

  RunningService service_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpMcpTest, AnswersClientsButNoPageOfAnotherSite) {
  Start();
  EXPECT_EQ(Send("server/discover")->status, 200);
  EXPECT_EQ(Send("server/discover")->get_header_value("Content-Type"), "application/json");
  const std::string own = server_->url().substr(0, server_->url().size() - 1);
  EXPECT_EQ(Send("server/discover", {{"Origin", own}})->status, 200);
  EXPECT_EQ(Send("server/discover", {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(Send("server/discover", {{"Origin", "null"}})->status, 403);
  EXPECT_EQ(Send("server/discover", {{"Sec-Fetch-Site", "cross-site"}})->status, 403);
  EXPECT_EQ(Send("server/discover", {{"Host", "rebound.example"}})->status, 403);
  httplib::Client client("127.0.0.1", port());
  EXPECT_EQ(client.Post("/mcp", For("server/discover"), Body("server/discover"), "text/plain")->status, 400);
  EXPECT_EQ(client.Get("/mcp")->status, 405);
  EXPECT_EQ(client.Get("/mcp", {{"Origin", "http://evil.example"}})->status, 403);
  EXPECT_EQ(client.Delete("/mcp")->status, 404);
  EXPECT_EQ(client.Put("/mcp", "{}", "application/json")->status, 400);
  EXPECT_EQ(client.Delete("/api/campaigns")->status, 400) << "only sessions are deleted";
  EXPECT_EQ(client.Post("/mcp", For("server/discover"), std::string(5 << 20, ' '), "application/json")->status, 413);
}

TEST_F(HttpMcpTest, KeepsASessionOfTheFirstEra) {
  Start();
  httplib::Client client("127.0.0.1", port());
  const auto opened =
      client.Post("/mcp", R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}})",
                  "application/json");
  ASSERT_EQ(opened->status, 200);
  const httplib::Headers session = {{"Mcp-Session-Id", opened->get_header_value("Mcp-Session-Id")}};
  EXPECT_EQ(
      client.Post("/mcp", session, R"({"jsonrpc":"2.0","method":"notifications/initialized"})", "application/json")
          ->status,
      202);
  EXPECT_EQ(
      client.Post("/mcp", session, R"({"jsonrpc":"2.0","id":2,"method":"tools/list"})", "application/json")->status,
      200);
  EXPECT_EQ(client.Delete("/mcp", session)->status, 204);
  EXPECT_EQ(
      client.Post("/mcp", session, R"({"jsonrpc":"2.0","id":3,"method":"tools/list"})", "application/json")->status,
      404);
}

TEST_F(HttpMcpTest, GivesEachTokenItsRole) {
  const TemporaryFolder folder("pawl-mcp-");
  const std::string file = (folder.path() / "tokens").string();
  std::ofstream(file) << "read 0123456789abcdef0\nsubmit 0123456789abcdef1\nwork 0123456789abcdef2\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  HttpServerOptions options;
  options.security.tokens = file;
  Start(options);
  Campaign();
  EXPECT_EQ(Send("server/discover")->status, 401);
  EXPECT_EQ(Send("server/discover", {{"Authorization", "Bearer nonsense"}})->status, 401);
  EXPECT_EQ(Send("server/discover", {{"Authorization", "Bearer 0123456789abcdef2"}})->status, 403);
  EXPECT_EQ(Call("situation", {{"campaign", "1"}}, "0123456789abcdef0")["structuredContent"]["campaign"],
            "campaigns/1");
  const Json change = {{"campaign", "1"}, {"variable", "nothing"}, {"value", 1}};
  EXPECT_THAT(Call("propose", change, "0123456789abcdef0")["content"][0]["text"].get<std::string>(),
              HasSubstr("needs the role submit"));
  EXPECT_THAT(Call("propose", change, "0123456789abcdef1")["content"][0]["text"].get<std::string>(),
              HasSubstr("nothing"));
}

TEST_F(HttpMcpTest, TakesABundleByItsFilesAndReadsNoFolder) {
  Start();
  const Json checked = Call("check", {{"files", TransposeFiles()}, {"gpu", "h200"}})["structuredContent"];
  EXPECT_EQ(checked["ok"], true) << checked;
  EXPECT_THAT(checked["warnings"][0].get<std::string>(), HasSubstr("not compiled"));
  EXPECT_EQ(Call("submit", {{"files", TransposeFiles()}})["structuredContent"]["campaign"]["bundle"], "transpose");
  EXPECT_THAT(Call("check", {{"bundle", "/etc"}})["content"][0]["text"].get<std::string>(),
              HasSubstr("send the bundle's files"));
  Json broken = TransposeFiles();
  broken["kernel.toml"] = "name = 7\n";
  EXPECT_GT(Call("check", {{"files", broken}})["structuredContent"]["problems"].size(), 0u);
  EXPECT_THAT(Call("submit", {{"files", broken}})["content"][0]["text"].get<std::string>(), HasSubstr("kernel.toml:1"));
  EXPECT_THAT(Call("check", {{"files", {{"../../x", ""}}}})["content"][0]["text"].get<std::string>(),
              HasSubstr("is not a path"));
}

TEST_F(HttpMcpTest, LetsGoOfClientsThatLeaveWhileTheyWait) {
  Start();
  const std::string name = service_.Submit();  // nobody measures its start
  const std::string body =
      Body("tools/call", {{"name", "wait"}, {"arguments", {{"campaign", name}, {"timeoutSeconds", 45}}}});
  const std::string request =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: "
      "2026-07-28\r\nMcp-Method: "
      "tools/call\r\nMcp-Name: wait\r\nAccept: application/json, text/event-stream\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string begun = "HTTP/1.1 200";
  for (int round = 0; round < 2; ++round) {
    std::vector<int> waiting;
    const auto patience = std::chrono::steady_clock::now() + std::chrono::duration<double>(20 * kSlowdown);
    while (waiting.size() < 16) {
      ASSERT_LT(std::chrono::steady_clock::now(), patience) << "calls of clients that are gone go on";
      const int fd = Connect();
      ASSERT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
      std::string status(begun.size(), '\0');
      ASSERT_EQ(recv(fd, status.data(), status.size(), MSG_WAITALL), static_cast<ssize_t>(status.size()));
      if (status == begun) {
        waiting.push_back(fd);
        continue;
      }
      close(fd);  // some that left in the last round are still being let go
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    EXPECT_EQ(Send("server/discover")->status, 429) << "so many at a time";
    httplib::Client page("127.0.0.1", port());
    EXPECT_EQ(page.Get("/")->status, 200) << "the dashboard goes on";
    for (const int fd : waiting) close(fd);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(20 * kSlowdown);
    while (Send("server/discover")->status != 200) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "calls of clients that are gone go on";
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

// The same of those that take no stream: nothing is sent to them before the reply.
TEST_F(HttpMcpTest, LetsGoOfClientsThatLeaveAPlainReply) {
  Start();
  const std::string body =
      Body("tools/call", {{"name", "wait"}, {"arguments", {{"campaign", service_.Submit()}, {"timeoutSeconds", 45}}}});
  const std::string request =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: "
      "2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: wait\r\nAccept: application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const auto await = [&](int status) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(20 * kSlowdown);
    while (Send("server/discover")->status != status && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return Send("server/discover")->status;
  };
  std::vector<int> waiting;
  for (int i = 0; i < 16; ++i) {
    waiting.push_back(Connect());
    ASSERT_EQ(send(waiting.back(), request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  }
  EXPECT_EQ(await(429), 429) << "so many at a time";
  for (const int fd : waiting) close(fd);
  EXPECT_EQ(await(200), 200) << "calls of clients that are gone go on";
}

// A client that is told to try again would propose, or submit, a second time.
TEST_F(HttpMcpTest, RefusesNoCallThatItHasBegun) {
  HttpServerOptions options;
  options.streams = 0;  // pages follow campaigns with all of them
  Start(options);
  Campaign();
  httplib::Client client("127.0.0.1", port());
  ASSERT_EQ(client.Get("/api/campaigns/1/events")->status, 503);
  const Json params = {{"name", "propose"},
                       {"arguments", {{"campaign", "1"}, {"variable", "SPLIT"}, {"value", 2}}},
                       {"_meta", {{"progressToken", 1}}}};
  const auto reply = client.Post("/mcp", For("tools/call", "propose"), Body("tools/call", params), "application/json");
  EXPECT_EQ(reply->status, 200);
  EXPECT_THAT(reply->body, HasSubstr("campaigns/1/proposals/"));
}

TEST_F(HttpMcpTest, LeavesThreadsToProbesWhilePagesFollowAndCallsWait) {
  Start();
  const std::string name = service_.Submit();  // nobody measures its start
  const std::string body =
      Body("tools/call", {{"name", "wait"}, {"arguments", {{"campaign", name}, {"timeoutSeconds", 45}}}});
  const std::string wait =
      "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: "
      "2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: wait\r\nAccept: application/json, "
      "text/event-stream\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  const std::string follow = "GET /api/campaigns/1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  std::vector<int> connections;
  for (int i = 0; i < 24 + 16; ++i) {
    const std::string& request = i < 24 ? follow : wait;
    connections.push_back(Connect());
    ASSERT_EQ(send(connections.back(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }
  for (int round = 0; round < 10; ++round) {
    httplib::Client monitor("127.0.0.1", port());
    monitor.set_read_timeout(static_cast<time_t>(5 * kSlowdown));
    const auto healthy = monitor.Get("/healthz");
    ASSERT_TRUE(healthy) << "round " << round;
    EXPECT_EQ(healthy->status, 200);
  }
  for (const int connection : connections) close(connection);
}

TEST_F(HttpMcpTest, RefusesAFloodAndGoesOn) {
  Start();
  std::atomic<int> answered = 0, refused = 0, other = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back([&] {
      for (int call = 0; call < 250; ++call) {
        const auto reply = Send("server/discover");
        ++(!reply ? other : reply->status == 200 ? answered : reply->status == 429 ? refused : other);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(other, 0);
  EXPECT_GE(answered, 200);
  EXPECT_EQ(answered + refused, 1000);
  httplib::Client page("127.0.0.1", port());
  EXPECT_EQ(page.Get("/api/campaigns")->status, 200);
}

}  // namespace
}  // namespace pawl
