// Promise 8: draining ends within 30 s while heartbeats go on; a second signal ends either daemon within 3 s.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "db/store.h"
#include "tests/instrumented.h"
#include "tests/orchestrator/engine/tiny_bundle.h"
#include "tests/promises/client.h"
#include "tests/promises/daemon.h"
#include "tests/promises/soak.h"
#include "worker/process/process.h"

namespace pawl {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class DrainTest : public testing::Test {
 protected:
  DrainTest() : client_(address_) {
    orchestrator_ = std::make_unique<Daemon>("pawl-orchestrator",
                                             std::vector<std::string>{"--listen", address_, "--database", Database()});
    EXPECT_TRUE(orchestrator_->Says("listening on")) << orchestrator_->Output();
  }

  std::string Database() const { return (folder_.path() / "pawl.db").string(); }

  // A worker with a trial that takes an hour; or as much less as the speed says.
  std::unique_ptr<Daemon> BusyWorker(const std::string& speed, const std::string& name = "busy") {
    client_.Submit(ShippedBundle("softmax"));
    auto worker = std::make_unique<Daemon>(
        "pawl-worker", std::vector<std::string>{"--orchestrator", address_, "--device", "replay", "--replay-speed",
                                                speed, "--name", name, "--log-level", "debug"});
    EXPECT_TRUE(worker->Says(": leased")) << worker->Output();
    absl::SleepFor(absl::Milliseconds(300));  // it begins at once, and nothing tells of that
    return worker;
  }

  // Seconds until the process has ended.
  static double EndOf(Daemon& daemon, int exit_code) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(daemon.WaitForEnd(milliseconds(40'000)), exit_code) << daemon.Output();
    return absl::ToDoubleSeconds(absl::Now() - begin);
  }

  TemporaryFolder folder_{"pawl-drain-"};
  const std::string address_ = "unix:" + (folder_.path() / "socket").string();
  Client client_;
  std::unique_ptr<Daemon> orchestrator_;
};

TEST_F(DrainTest, OfTheOrchestratorEndsWhileHeartbeatsGoOn) {
  client_.Submit(TinyBundle());
  ASSERT_TRUE(client_.Register("workers/a").ok());
  v1::LeaseTrialResponse leased;
  ASSERT_TRUE(client_.Lease("workers/a", 0, &leased).ok());
  orchestrator_->Signal(SIGTERM);
  ASSERT_TRUE(orchestrator_->Says("draining"));
  const absl::Time begin = absl::Now();
  // In full the trial never ends; in short its result comes in time.
  int heartbeats = 0;
  const absl::Duration enough = FullSoak() ? absl::Seconds(24) : absl::Seconds(2);
  while (absl::Now() - begin < enough) {
    const grpc::Status renewed = client_.Renew("workers/a", leased.lease());
    ASSERT_TRUE(renewed.ok()) << renewed.error_message();
    ++heartbeats;
    absl::SleepFor(absl::Milliseconds(500));
  }
  if (!FullSoak()) {
    EXPECT_TRUE(client_.Complete("workers/a", leased).ok());
  }
  EndOf(*orchestrator_, 0);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  EXPECT_LT(seconds, 30 * kSlowdown);
  EXPECT_GE(heartbeats, 2);
  ReportPromise(8, absl::StrFormat("orchestrator: ended %.1f s after the signal, %d heartbeats answered meanwhile",
                                   seconds, heartbeats));
}

// A connection to a port on this machine that has sent this.
Fd Connected(int port, const std::string& text) {
  Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to), 0);
  EXPECT_EQ(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  return fd;
}

TEST_F(DrainTest, OfTheOrchestratorDoesNotWaitForBrowsers) {
  orchestrator_.reset();
  orchestrator_ = std::make_unique<Daemon>(
      "pawl-orchestrator",
      std::vector<std::string>{"--listen", address_, "--database", Database(), "--http", "127.0.0.1:0"});
  ASSERT_TRUE(orchestrator_->Says("dashboard at http://127.0.0.1:"));
  const std::string said = orchestrator_->Output();
  const std::string before = "dashboard at http://127.0.0.1:";
  const int port = std::stoi(said.substr(said.find(before) + before.size()));
  client_.Submit(TinyBundle());
  const std::string head = " HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n";
  // One that has asked nothing yet, one in the middle of it, and one that follows a campaign.
  const Fd idle = Connected(port, "");
  const Fd half = Connected(port, "GET / HTTP/1.1\r\nHost: local");
  const Fd stream = Connected(port, "GET /api/campaigns/1/events" + head);
  std::string events;
  while (events.find("data: ") == std::string::npos) {
    char piece[4096];
    const ssize_t got = recv(stream.get(), piece, sizeof piece, 0);
    ASSERT_GT(got, 0) << events;
    events.append(piece, got);
  }
  orchestrator_->Signal(SIGTERM);
  const double seconds = EndOf(*orchestrator_, 0);
  EXPECT_LT(seconds, 3 * kSlowdown);
  ReportPromise(8,
                absl::StrFormat("orchestrator with idle browsers and one that follows a campaign: ended %.2f s after "
                                "the signal",
                                seconds));
}

TEST_F(DrainTest, OfAWorkerEndsWhileHeartbeatsGoOn) {
  const std::unique_ptr<Daemon> worker = BusyWorker(FullSoak() ? "0.0001" : "0.4");
  worker->Signal(SIGTERM);
  const double seconds = EndOf(*worker, 0);
  EXPECT_LT(seconds, 30 * kSlowdown);
  EXPECT_THAT(worker->Output(), HasSubstr(FullSoak() ? "given back" : "measured"));
  orchestrator_->Signal(SIGKILL);
  orchestrator_.reset();
  int lost = 0;
  const auto store = Store::Open({.file = Database()}).value();
  const std::vector<v1::Event> events = store->Events(1, 0, 1000).value();
  for (const v1::Event& event : events) {
    if (!event.has_lost()) continue;
    EXPECT_EQ(event.lost().reason(), v1::LeaseLost::GIVEN_BACK) << "it was heard of until the end";
    ++lost;
  }
  EXPECT_EQ(lost, FullSoak() ? 1 : 0);
  ReportPromise(8, absl::StrFormat("worker: ended %.1f s after the signal, %s", seconds,
                                   FullSoak() ? "and gave back a trial of hours" : "its trial finished"));
}

TEST_F(DrainTest, IsCutShortByASecondSignal) {
  double worker_seconds = 0, orchestrator_seconds = 0;
  const int times = SoakCount(1, 10);
  for (int i = 0; i < times; ++i) {
    const std::unique_ptr<Daemon> worker = BusyWorker("0.0001", absl::StrCat("busy-", i));
    worker->Signal(SIGTERM);
    ASSERT_TRUE(worker->Says("draining"));
    orchestrator_->Signal(SIGTERM);
    ASSERT_TRUE(orchestrator_->Says("draining"));
    EXPECT_EQ(worker->WaitForEnd(milliseconds(300)), -1) << "it finishes what it does";
    orchestrator_->Signal(SIGTERM);
    orchestrator_seconds = std::max(orchestrator_seconds, EndOf(*orchestrator_, 0));
    worker->Signal(SIGTERM);
    worker_seconds = std::max(worker_seconds, EndOf(*worker, 1));
    orchestrator_ = std::make_unique<Daemon>("pawl-orchestrator",
                                             std::vector<std::string>{"--listen", address_, "--database", Database()});
    ASSERT_TRUE(orchestrator_->Says("listening on"));
  }
  EXPECT_LT(orchestrator_seconds, 3 * kSlowdown);
  EXPECT_LT(worker_seconds, 3 * kSlowdown);
  ReportPromise(8, absl::StrFormat("second signal, %d times: orchestrator ended within %.2f s, worker within %.2f s",
                                   times, orchestrator_seconds, worker_seconds));
}

}  // namespace
}  // namespace pawl
