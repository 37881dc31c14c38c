#include "orchestrator/http/server.h"

#include <gtest/gtest.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "orchestrator/http/address.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/running_service.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using Clock = std::chrono::steady_clock;

class HttpServerTest : public testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    if (options.address.empty()) options.address = "0";
    server_ = HttpServer::Start(service_.channel(), options).value();
  }
  int port() const { return std::stoi(server_->url().substr(server_->url().rfind(':') + 1)); }
  httplib::Client Client() { return httplib::Client("127.0.0.1", port()); }
  httplib::Headers Own() const { return {{"X-Pawl", "1"}}; }

  // What comes back for these bytes, until the server closes.
  std::string Raw(const std::string& bytes) {
    const int fd = Connect();
    EXPECT_EQ(send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
    std::string all(1 << 16, '\0');
    size_t got = 0;
    for (ssize_t n; (n = recv(fd, all.data() + got, all.size() - got, 0)) > 0;) got += n;
    close(fd);
    return all.substr(0, got);
  }
  int Connect() const {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
    return fd;
  }

  RunningService service_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesThePageForItsAddressesAndKeepsBrowsersCareful) {
  Start();
  auto client = Client();
  for (const char* path : {"/", "/campaigns/7", "/campaigns/7/iterations/3", "/explore", "/workers"}) {
    const auto reply = client.Get(path);
    ASSERT_TRUE(reply) << path;
    EXPECT_EQ(reply->status, 200) << path;
    EXPECT_EQ(reply->get_header_value("Content-Type"), "text/html; charset=utf-8");
    EXPECT_NE(reply->get_header_value("Content-Security-Policy").find("script-src 'self';"), std::string::npos);
    EXPECT_EQ(reply->get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(reply->get_header_value("X-Frame-Options"), "DENY");
  }
  const auto script = client.Get("/app.js");
  EXPECT_EQ(script->status, 200);
  EXPECT_EQ(client.Get("/app.js", {{"If-None-Match", script->get_header_value("ETag")}})->status, 304);
  EXPECT_EQ(client.Get("/nothing")->status, 404);
  EXPECT_EQ(client.Get("/campaigns/7/nothing")->status, 404);
  EXPECT_EQ(client.Get("/../etc/passwd")->status, 404);
  EXPECT_EQ(client.Get("/api/campaigns")->get_header_value("Cache-Control"), "no-store");
}

TEST_F(HttpServerTest, TellsMonitorsHowItIs) {
  HttpServerOptions options;
  absl::Status ready = absl::UnavailableError("the disk is full");
  options.probes.metrics = [] { return std::string("# TYPE a gauge\na 1\n"); };
  options.probes.ready = [&] { return ready; };
  std::string remark;
  options.probes.remark = [&] { return remark; };
  Start(options);
  auto client = Client();
  EXPECT_EQ(client.Get("/healthz")->body, "ok\n");
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_EQ(client.Get("/readyz")->body, "the disk is full\n");
  ready = absl::OkStatus();
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->body, "ready\n");
  remark = "maintenance";
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->body, "ready: maintenance\n");
  const auto metrics = client.Get("/metrics");
  EXPECT_EQ(metrics->status, 200);
  EXPECT_EQ(metrics->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(metrics->body, "# TYPE a gauge\na 1\n");
}

TEST_F(HttpServerTest, AnswersAnUnknownAddressWithItsPageToABrowserAndWithJsonBelowApi) {
  Start();
  auto client = Client();
  const httplib::Headers browser = {{"Accept", "text/html,application/xhtml+xml,*/*;q=0.8"}};
  const std::string page = client.Get("/")->body;
  for (const char* path : {"/nothing", "/campaigns/x", "/index.html", "/campaigns/1/iterations"}) {
    const auto reply = client.Get(path, browser);
    EXPECT_EQ(reply->status, 404) << path;
    EXPECT_EQ(reply->get_header_value("Content-Type"), "text/html; charset=utf-8") << path;
    EXPECT_EQ(reply->body, page) << path;
  }
  EXPECT_EQ(client.Get("/nothing")->get_header_value("Content-Type"), "text/plain; charset=utf-8");
  for (const char* path : {"/api", "/api/", "/api/nothing"}) {
    const auto reply = client.Get(path, browser);
    EXPECT_EQ(reply->status, 404) << path;
    EXPECT_EQ(reply->get_header_value("Content-Type"), "application/json") << path;
    EXPECT_NE(reply->body.find("\"NOT_FOUND\""), std::string::npos) << reply->body;
  }
}

TEST_F(HttpServerTest, TellsNothingToPagesOfOthers) {
  Start();
  auto client = Client();
  EXPECT_EQ(client.Get("/api/campaigns", {{"Host", "rebound.example"}})->status, 403);
  service_.Submit();
  EXPECT_EQ(client.Post("/api/campaigns/1/cancel", "{}", "application/json")->status, 403);
  EXPECT_EQ(client
                .Post("/api/campaigns/1/cancel", {{"X-Pawl", "1"}, {"Origin", "http://evil.example"}}, "{}",
                      "application/json")
                ->status,
            403);
  EXPECT_EQ(client.Post("/api/campaigns/1/cancel", Own(), "{}", "text/plain")->status, 400);
  EXPECT_EQ(client.Get("/api/campaigns/1/cancel")->status, 404);
  EXPECT_EQ(client.Post("/api/campaigns/1/cancel", Own(), "{}", "application/json")->status, 200);
}

TEST_F(HttpServerTest, RefusesWhatIsTooLargeTooLongOrNoHttp) {
  HttpServerOptions options;
  options.max_body = 1000;
  Start(options);
  auto client = Client();
  EXPECT_EQ(client.Post("/api/campaigns", Own(), std::string(2000, ' '), "application/json")->status, 413);
  EXPECT_EQ(client.Get("/" + std::string(9000, 'a'))->status, 414);
  EXPECT_EQ(client.Get("/", {{"X-Long", std::string(10'000, 'a')}})->status, 400);
  EXPECT_EQ(client.Put("/api/campaigns", Own(), "{}", "application/json")->status, 400);
  EXPECT_EQ(Raw("nonsense\r\n\r\n").substr(0, 12), "HTTP/1.1 400");
  EXPECT_EQ(Raw(std::string("\0\0\0\0\r\n\r\n", 8)).substr(0, 12), "HTTP/1.1 400");
  // Ranges would be put together in memory: it is sent whole.
  EXPECT_EQ(client.Get("/app.css", {{"Range", "bytes=0-1,0-1,0-1"}})->status, 200);
  EXPECT_EQ(client.Get("/")->status, 200);
}

TEST_F(HttpServerTest, TakesABodyInChunksUpToItsLimit) {
  HttpServerOptions options;
  options.max_body = 1000;
  Start(options);
  service_.Submit();
  const auto post = [&](const std::string& headers, const std::string& body) {
    return Raw(
        "POST /api/campaigns/1/cancel HTTP/1.1\r\nHost: localhost\r\nX-Pawl: 1\r\nConnection: close\r\n"
        "Content-Type: application/json\r\n" +
        headers + "\r\n" + body);
  };
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const auto status = [](const std::string& reply) { return reply.substr(0, 12); };
  EXPECT_EQ(status(post(chunked, "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n")), "HTTP/1.1 200");
  const std::string large = post(chunked, "3e9\r\n" + std::string(1001, ' ') + "\r\n0\r\n\r\n");
  EXPECT_EQ(status(large), "HTTP/1.1 413");
  EXPECT_NE(large.find("its body is larger than 1000 bytes"), std::string::npos) << large;
  std::string endless;
  for (int i = 0; i < 800'000; ++i) endless += "1\r\n \r\n";
  EXPECT_EQ(status(post(chunked, endless)), "HTTP/1.1 413") << "nothing says how much is still to come";
  EXPECT_EQ(status(post(chunked, "nonsense\r\n")), "HTTP/1.1 400");
  EXPECT_EQ(status(post(chunked + "Content-Length: 2\r\n", "2\r\n{}\r\n0\r\n\r\n")), "HTTP/1.1 400");
  const std::string packed = post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n");
  EXPECT_EQ(status(packed), "HTTP/1.1 400");
  EXPECT_NE(packed.find("Transfer-Encoding: expected chunked or none"), std::string::npos) << packed;
}

// A connection closed on what is still being sent would cut off the reply as well.
TEST_F(HttpServerTest, LetsWhoIsRefusedSendTheRestAndReadWhy) {
  Start();
  const int fd = Connect();
  const std::string head =
      "POST /api/campaigns HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n"
      "Content-Type: application/json\r\nContent-Length: 3000\r\n\r\n";
  ASSERT_EQ(send(fd, head.data(), head.size(), MSG_NOSIGNAL), static_cast<ssize_t>(head.size()));
  pollfd reply = {fd, POLLIN, 0};
  ASSERT_EQ(poll(&reply, 1, 10'000), 1);
  const std::string piece(1000, ' ');
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(send(fd, piece.data(), piece.size(), MSG_NOSIGNAL), static_cast<ssize_t>(piece.size())) << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::string status(12, '\0');
  EXPECT_EQ(recv(fd, status.data(), status.size(), 0), static_cast<ssize_t>(status.size()));
  EXPECT_EQ(status, "HTTP/1.1 403");
  close(fd);
}

TEST_F(HttpServerTest, CutsOffWhoTricklesIn) {
  HttpServerOptions options;
  options.request_seconds = 0.3;
  Start(options);
  const int fd = Connect();
  const auto began = Clock::now();
  ssize_t sent = 1;
  while (sent > 0 && Clock::now() - began < std::chrono::seconds(10)) {
    sent = send(fd, "G", 1, MSG_NOSIGNAL);
    char byte;
    if (recv(fd, &byte, 1, MSG_DONTWAIT) == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  close(fd);
  EXPECT_LT(Clock::now() - began, kSlowdown * std::chrono::seconds(5));
  EXPECT_EQ(Client().Get("/")->status, 200);
}

TEST_F(HttpServerTest, AnswersOthersWhileManyAreConnectedAndSayNothing) {
  HttpServerOptions options;
  options.threads = 2;
  Start(options);
  std::vector<int> silent;
  for (int i = 0; i < 10; ++i) silent.push_back(Connect());
  auto client = Client();
  client.set_read_timeout(kSlowdown * 8);  // each of them may take ten seconds for its request
  const auto reply = client.Get("/healthz");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  for (const int fd : silent) close(fd);
}

TEST_F(HttpServerTest, AnswersOthersWhileManySendAByteNowAndThen) {
  HttpServerOptions options;
  options.threads = 2;
  Start(options);
  std::atomic<bool> enough = false;
  std::vector<int> slow;
  for (int i = 0; i < 10; ++i) slow.push_back(Connect());
  std::thread sender([&] {
    while (!enough) {
      for (const int fd : slow) send(fd, "G", 1, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
  auto client = Client();
  client.set_read_timeout(kSlowdown * 8);
  const auto reply = client.Get("/healthz");
  enough = true;
  sender.join();
  for (const int fd : slow) close(fd);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
}

TEST_F(HttpServerTest, AnswersOthersWhileManyTakeTheirRepliesSlowly) {
  HttpServerOptions options;
  options.threads = 2;
  Start(options);
  std::vector<int> slow;
  for (int i = 0; i < 10; ++i) {
    const int fd = Connect();
    const int little = 4096;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    const std::string asked = "GET /app.js HTTP/1.1\r\nHost: localhost\r\n\r\n";  // larger than all buffers
    EXPECT_GT(send(fd, asked.data(), asked.size(), MSG_NOSIGNAL), 0);
    slow.push_back(fd);
  }
  auto client = Client();
  client.set_read_timeout(kSlowdown * 12);
  const auto reply = client.Get("/healthz");
  for (const int fd : slow) close(fd);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
}

TEST_F(HttpServerTest, AnswersOthersWhileAllStreamsAreTaken) {
  service_.Submit();
  HttpServerOptions options;
  options.threads = 4;
  options.streams = 2;
  Start(options);
  std::atomic<int> following = 0;
  std::atomic<bool> enough = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      bool told = false;
      Client().Get("/api/campaigns/1/events", [&](const char*, size_t) {
        if (!told) ++following;
        told = true;
        return !enough;
      });
    });
  }
  while (following < 2) std::this_thread::yield();
  auto client = Client();
  const auto third = client.Get("/api/campaigns/1/events");
  EXPECT_EQ(third->status, 503);
  EXPECT_NE(third->get_header_value("Retry-After"), "");
  EXPECT_EQ(client.Get("/api/campaigns/1")->status, 200);
  enough = true;
  client.Post("/api/campaigns/1/cancel", Own(), "{}", "application/json");  // an event for the readers to leave by
  for (std::thread& reader : readers) reader.join();
  // Their places are free again, once the server has seen that they left.
  auto after = client.Get("/api/campaigns/1/events");
  for (const absl::Time begin = absl::Now(); after->status == 503 && absl::Now() < begin + absl::Seconds(10);) {
    std::this_thread::yield();
    after = client.Get("/api/campaigns/1/events");
  }
  EXPECT_EQ(after->status, 200);
  EXPECT_NE(after->body.find("event: end"), std::string::npos);
}

TEST_F(HttpServerTest, KeepsAStreamOpenWhileNothingHappensAndEndsItWell) {
  service_.Submit();
  HttpServerOptions options;
  options.api.patience = absl::Milliseconds(10);  // it looks a few times a second, and says so each time
  Start(options);
  auto client = Client();
  std::string all;
  int quiet = 0;
  const auto reply = client.Get("/api/campaigns/1/events", [&](const char* piece, size_t size) {
    all.append(piece, size);
    if (std::string_view(piece, size).find(": still here") != std::string_view::npos && ++quiet == 2) {
      Client().Post("/api/campaigns/1/cancel", Own(), "{}", "application/json");
    }
    return true;
  });
  ASSERT_TRUE(reply) << httplib::to_string(reply.error());
  EXPECT_EQ(quiet, 2) << all;
  EXPECT_TRUE(all.ends_with("event: end\ndata: {}\n\n")) << all;
}

TEST_F(HttpServerTest, EndsWhileSomebodyFollows) {
  service_.Submit();
  Start();
  std::atomic<bool> following = false;
  std::thread reader([&, port = port()] {
    httplib::Client("127.0.0.1", port).Get("/api/campaigns/1/events", [&](const char*, size_t) {
      following = true;
      return true;
    });
  });
  while (!following) std::this_thread::yield();
  const auto began = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - began, kSlowdown * std::chrono::seconds(3));
  reader.join();
}

// Browsers open connections ahead of what they will ask for.
TEST_F(HttpServerTest, EndsWhileConnectionsAreIdle) {
  HttpServerOptions options;
  options.threads = 2;
  options.waiting = 2;
  options.request_seconds = 60;
  Start(options);
  std::vector<int> idle;
  const std::string half =
      "POST /api/campaigns HTTP/1.1\r\nHost: localhost\r\nX-Pawl: 1\r\nContent-Type: application/json\r\n"
      "Content-Length: 9\r\nExpect: 100-continue\r\n\r\n";
  for (int i = 0; i < 6; ++i) {
    idle.push_back(Connect());
    if (i >= 2) continue;  // two are served, which it says; the others wait
    EXPECT_GT(send(idle[i], half.data(), half.size(), MSG_NOSIGNAL), 0);
    char reply[12];
    ASSERT_EQ(recv(idle[i], reply, sizeof reply, MSG_WAITALL), 12);
    EXPECT_EQ(std::string(reply, sizeof reply), "HTTP/1.1 100");
  }
  const auto began = Clock::now();
  server_.reset();
  EXPECT_LT(Clock::now() - began, kSlowdown * std::chrono::seconds(3));
  for (const int fd : idle) close(fd);
}

TEST_F(HttpServerTest, ListensWhereItMayAndNobodyElseDoes) {
  Start();
  const auto start = [&](const std::string& address, const SecurityOptions& security = {}) {
    HttpServerOptions options;
    options.address = address;
    options.security = security;
    return HttpServer::Start(service_.channel(), options).status();
  };
  const absl::Status taken = start(std::to_string(port()));
  EXPECT_TRUE(absl::IsUnavailable(taken));
  EXPECT_EQ(taken.message(), absl::StrCat("can't listen on 127.0.0.1:", port(),
                                          ": another process uses this port; stop it, or name another port with "
                                          "--http"));
  EXPECT_TRUE(absl::IsInvalidArgument(start("0.0.0.0:0")));
  EXPECT_TRUE(absl::IsInvalidArgument(start("nonsense")));
  EXPECT_TRUE(absl::IsInvalidArgument(start("unix:/tmp/socket")));
}

// Certificates as scripts/make-certificates makes them.
class HttpTlsTest : public HttpServerTest {
 protected:
  void SetUp() override {
    const char* source = getenv("PAWL_SOURCE_DIR");
    ASSERT_NE(source, nullptr);
    const std::string command =
        std::string(source) + "/scripts/make-certificates " + folder_.path().string() + "/pem >/dev/null 2>&1";
    ASSERT_EQ(system(command.c_str()), 0);
    security_.tls.cert = folder_.path() / "pem/orchestrator.crt";
    security_.tls.key = folder_.path() / "pem/orchestrator.key";
    security_.tls.ca = folder_.path() / "pem/ca.crt";
    security_.tokens = folder_.path() / "tokens";
    std::ofstream(security_.tokens) << "read readers-token-0123\nsubmit submit-token-0123\n";
    std::filesystem::permissions(security_.tokens, std::filesystem::perms(0600));
  }

  TemporaryFolder folder_{"pawl-http-"};
  SecurityOptions security_;
};

TEST_F(HttpTlsTest, EncryptsAndAsksForATokenWhereOthersCanReachIt) {
  HttpServerOptions options;
  options.address = "0.0.0.0:0";
  options.security = security_;
  options.request_seconds = 1;
  Start(options);
  EXPECT_EQ(server_->url().substr(0, 8), "https://");
  service_.Submit();
  httplib::SSLClient client("localhost", port());
  client.set_ca_cert_path(security_.tls.ca.c_str());
  const auto page = client.Get("/");
  ASSERT_TRUE(page) << httplib::to_string(page.error());
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(client.Get("/api/campaigns")->status, 401);
  const auto bearer = [](const std::string& token) {
    return httplib::Headers{{"Authorization", "Bearer " + token}, {"X-Pawl", "1"}};
  };
  EXPECT_EQ(client.Get("/api/campaigns", bearer("readers-token-0123"))->status, 200);
  EXPECT_EQ(client.Get("/api/about", bearer("readers-token-0123"))->body.find("\"maySubmit\":true"), std::string::npos);
  const auto cancel = [&](const std::string& token) {
    return client.Post("/api/campaigns/1/cancel", bearer(token), "{}", "application/json")->status;
  };
  EXPECT_EQ(cancel("readers-token-0123"), 403);
  EXPECT_EQ(cancel("submit-token-0123"), 200);
  EXPECT_GT(client.Get("/app.js")->body.size(), 10u);
  // Who does not speak TLS is cut off.
  EXPECT_EQ(Raw("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").find("HTTP/1.1 200"), std::string::npos);
  EXPECT_EQ(client.Get("/")->status, 200);
}

TEST_F(HttpTlsTest, NeedsTokensWhereOthersCanReachIt) {
  HttpServerOptions options;
  options.address = "0.0.0.0:0";
  options.security = security_;
  options.security.tokens.clear();
  const absl::Status status = HttpServer::Start(service_.channel(), options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_NE(std::string(status.message()).find("--tokens"), std::string::npos) << status;
}

}  // namespace
}  // namespace pawl
