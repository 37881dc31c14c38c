#include "cli/connect/campaign_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <thread>

#include "cli/connect/connection.h"
#include "cli/connect/requests.h"
#include "cli/follow/follow.h"
#include "cli/follow/waits.h"
#include "cli/text/campaign_text.h"
#include "cli/text/failure.h"
#include "tests/cli/fake_orchestrator.h"
#include "tests/cli/some_iterations.h"

namespace pawl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

v1::WatchCampaignResponse Message(int64_t sequence) {
  v1::WatchCampaignResponse message;
  message.mutable_event()->set_sequence(sequence);
  return message;
}

int UnixSocket(const std::string& path, int (*use)(int, const sockaddr*, socklen_t)) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(use(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << path;
  return fd;
}

// Passes one connection on to another socket, but takes its time before it answers.
class SlowDoor {
 public:
  SlowDoor(const std::string& path, const std::string& to, absl::Duration delay) : listener_(UnixSocket(path, bind)) {
    listen(listener_, 1);
    thread_ = std::thread([this, to, delay] { Pass(to, delay); });
  }
  ~SlowDoor() {
    thread_.join();
    close(listener_);
  }

 private:
  void Pass(const std::string& to, absl::Duration delay) const {
    const int client = accept(listener_, nullptr, nullptr);
    absl::SleepFor(delay);
    const int server = UnixSocket(to, connect);
    char data[4096];
    for (bool open = true; open;) {
      pollfd both[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
      poll(both, 2, -1);
      for (int i = 0; i < 2 && open; ++i) {
        if (both[i].revents == 0) continue;
        const ssize_t count = read(both[i].fd, data, sizeof(data));
        open = count > 0 && write(both[1 - i].fd, data, static_cast<size_t>(count)) == count;
      }
    }
    close(client);
    close(server);
  }

  const int listener_;
  std::thread thread_;
};

class CampaignClientTest : public testing::Test {
 protected:
  std::unique_ptr<Connection> Connect() {
    Settings settings;
    settings.orchestrator = fake_.address();
    return *Connection::Open(settings, Need::kRunning);
  }
  // Sequences that following hands on.
  FollowOptions Noting(std::vector<int64_t>* seen) {
    FollowOptions follow;
    follow.see = [seen](const v1::WatchCampaignResponse& message) {
      seen->push_back(message.event().sequence());
      return true;
    };
    follow.tick = [] { return absl::OkStatus(); };
    follow.say = [this](const std::string& line) { said_ += line + "\n"; };
    follow.reconnected = [this] { ++reconnected_; };
    return follow;
  }

  FakeOrchestrator fake_;
  std::string said_;
  int reconnected_ = 0;
};

TEST_F(CampaignClientTest, BringsErrorsWithTheirDetails) {
  CampaignClient client(fake_.address());
  const absl::Status status = client.GetCampaign("campaigns/8").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(), "there is no campaigns/8");
  EXPECT_EQ(DetailOf(status).resource(), "campaigns/8");
  EXPECT_EQ(DetailOf(status).fix(), "pawl campaigns lists all campaigns");
}

TEST_F(CampaignClientTest, SaysWhatToDoWhereNobodyAnswers) {
  CampaignClient client("unix:/nonexistent/socket");
  const absl::Status status = client.GetCampaign("campaigns/7").status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "no orchestrator answers at unix:/nonexistent/socket");
  EXPECT_THAT(DetailOf(status).fix(), HasSubstr("pawl-orchestrator --listen unix:/nonexistent/socket"));
}

// One on a busy machine may take a while until it greets.
TEST_F(CampaignClientTest, WaitsForAnOrchestratorThatIsSlowToAnswer) {
  const std::string behind = fake_.address().substr(sizeof("unix:") - 1);
  const SlowDoor door(behind + ".door", behind, absl::Seconds(2));
  CampaignClient client(fake_.address() + ".door");
  EXPECT_TRUE(absl::IsNotFound(client.GetCampaign("campaigns/8").status()));
}

TEST_F(CampaignClientTest, TakesACallThatAnEndingOrchestratorCancelledForUnavailable) {
  CampaignClient client(fake_.address());
  fake_.FailNext(absl::CancelledError(""));
  EXPECT_TRUE(absl::IsUnavailable(client.GetCampaign("campaigns/7").status()));
}

TEST_F(CampaignClientTest, WaitsForEventsNoLongerThanItIsTold) {
  CampaignClient client(fake_.address());
  fake_.events = {Message(1), Message(2)};
  const std::unique_ptr<CampaignWatch> watch = client.Watch("campaigns/7", 1);
  v1::WatchCampaignResponse message;
  CampaignWatch::Got got;
  while ((got = watch->Next(absl::Milliseconds(1), &message)) == CampaignWatch::Got::kNothingYet) {
  }
  EXPECT_EQ(got, CampaignWatch::Got::kMessage);
  EXPECT_EQ(message.event().sequence(), 2);
  EXPECT_EQ(watch->Next(absl::Seconds(30), &message), CampaignWatch::Got::kEnd);
  EXPECT_TRUE(watch->status().ok());
}

TEST_F(CampaignClientTest, LeavesAWatchWithoutWaitingForItsEnd) {
  CampaignClient client(fake_.address());
  for (int i = 1; i <= 1000; ++i) fake_.events.push_back(Message(i));
  const std::unique_ptr<CampaignWatch> watch = client.Watch("campaigns/7", 0);
  v1::WatchCampaignResponse message;
  EXPECT_EQ(watch->Next(absl::Seconds(30), &message), CampaignWatch::Got::kMessage);
}

TEST_F(CampaignClientTest, FollowsOnAfterABreak) {
  fake_.events = {Message(1), Message(2), Message(5), Message(6)};
  fake_.BreakWatchAfter(3);
  std::vector<int64_t> seen;
  const std::unique_ptr<Connection> connection = Connect();
  EXPECT_TRUE(Follow(*connection, "campaigns/7", Noting(&seen)).ok());
  EXPECT_THAT(seen, ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(fake_.asked().watches, ElementsAre(0, 5));
  EXPECT_EQ(reconnected_, 1);
}

TEST_F(CampaignClientTest, FollowsOnAfterARestart) {
  fake_.events = {Message(1), Message(2)};
  fake_.BreakWatchAfter(1);
  std::vector<int64_t> seen;
  FollowOptions follow = Noting(&seen);
  std::thread restart;
  follow.see = [&](const v1::WatchCampaignResponse& message) {
    seen.push_back(message.event().sequence());
    if (seen.size() == 1) fake_.Stop();
    return true;
  };
  follow.say = [&](const std::string& line) {
    said_ += line;
    restart = std::thread([&] { fake_.Start(); });
  };
  const std::unique_ptr<Connection> connection = Connect();
  EXPECT_TRUE(Follow(*connection, "campaigns/7", follow).ok());
  restart.join();
  EXPECT_THAT(seen, ElementsAre(1, 2));
  EXPECT_THAT(said_, HasSubstr("does not answer: reconnecting"));
}

TEST_F(CampaignClientTest, DoesNotLookForWhatNeverAnswered) {
  fake_.Stop();
  std::vector<int64_t> seen;
  const std::unique_ptr<Connection> connection = Connect();
  EXPECT_TRUE(absl::IsUnavailable(Follow(*connection, "campaigns/7", Noting(&seen))));
}

TEST_F(CampaignClientTest, StopsFollowingWhenItHasSeenEnough) {
  fake_.events = {Message(1), Message(2)};
  std::vector<int64_t> seen;
  FollowOptions follow = Noting(&seen);
  follow.see = [&](const v1::WatchCampaignResponse& message) {
    seen.push_back(message.event().sequence());
    return false;
  };
  const std::unique_ptr<Connection> connection = Connect();
  EXPECT_TRUE(Follow(*connection, "campaigns/7", follow).ok());
  EXPECT_THAT(seen, ElementsAre(1));
}

TEST_F(CampaignClientTest, SubmitsAgainWithTheSameRequest) {
  fake_.FailNext(absl::UnavailableError("starting"));
  const std::unique_ptr<Connection> connection = Connect();
  v1::CampaignSpec spec;
  spec.set_gpu("H200");
  absl::StatusOr<v1::Campaign> campaign =
      SubmitBundle(*connection, {}, spec, Need::kRunning, [&](const std::string& line) { said_ += line; });
  ASSERT_TRUE(campaign.ok()) << campaign.status();
  EXPECT_EQ(campaign->name(), "campaigns/7");
  const std::vector<v1::SubmitCampaignRequest> submits = fake_.asked().submits;
  ASSERT_EQ(submits.size(), 2u);
  EXPECT_EQ(submits[0].request_id().size(), 32u);
  EXPECT_EQ(submits[0].request_id(), submits[1].request_id());
  EXPECT_EQ(submits[1].spec().gpu(), "H200");
  EXPECT_THAT(said_, HasSubstr("retrying for 120 s"));
}

TEST_F(CampaignClientTest, SubmitsOnlyOnceWhatIsRefused) {
  fake_.FailNext(absl::InvalidArgumentError("the bundle has mistakes"));
  const std::unique_ptr<Connection> connection = Connect();
  EXPECT_TRUE(
      absl::IsInvalidArgument(SubmitBundle(*connection, {}, {}, Need::kRunning, [](const std::string&) {}).status()));
  EXPECT_EQ(fake_.asked().submits.size(), 1u);
}

TEST_F(CampaignClientTest, FindsTheWayToTheBest) {
  fake_.iterations = SomeIterations();
  const std::unique_ptr<Connection> connection = Connect();
  absl::StatusOr<std::vector<v1::Iteration>> path = KeptPath(*connection, "campaigns/7", 4);
  ASSERT_TRUE(path.ok()) << path.status();
  std::vector<int> numbers;
  for (const v1::Iteration& iteration : *path) numbers.push_back(iteration.number());
  EXPECT_THAT(numbers, ElementsAre(0, 1, 4));
}

TEST_F(CampaignClientTest, NotesForHowLongNoWorkerCanTakeACampaign) {
  CampaignClient client(fake_.address());
  const SteadyTime begin;
  WorkerWait wait("campaigns/7", absl::Seconds(60));
  const auto look = [&](int second) { return wait.Look(client, begin + absl::Seconds(second)); };
  fake_.campaign.set_state(v1::WAITING);
  fake_.campaign.set_message("no worker is registered: start pawl-worker");
  EXPECT_TRUE(look(0).ok());
  EXPECT_TRUE(look(59).ok());
  fake_.campaign.clear_message();  // one came, and left again
  EXPECT_TRUE(look(60).ok());
  fake_.campaign.set_message("no worker can take it: workers/a (NVIDIA L4): it asks for a GPU named H200");
  EXPECT_TRUE(look(100).ok());
  EXPECT_TRUE(look(159).ok());
  const absl::Status status = look(160);
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("it asks for a GPU named H200"));
  EXPECT_THAT(DetailOf(status).fix(), HasSubstr("pawl cancel 7"));
  fake_.campaign.set_state(v1::RUNNING);
  EXPECT_TRUE(look(161).ok());
}

TEST_F(CampaignClientTest, LooksWhatACampaignWaitsForNotAllTheTime) {
  CampaignClient client(fake_.address());
  WorkerWait wait("campaigns/7", absl::ZeroDuration());
  fake_.campaign.set_state(v1::WAITING);
  EXPECT_TRUE(wait.Look(client, SteadyTime()).ok());
  fake_.campaign.set_message("no worker is registered: start pawl-worker");
  EXPECT_TRUE(wait.Look(client, SteadyTime() + absl::Milliseconds(100)).ok());
  EXPECT_FALSE(wait.Look(client, SteadyTime() + absl::Seconds(1)).ok());
}

}  // namespace
}  // namespace pawl
