#include "orchestrator/http/connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

namespace pawl {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

class HttpConnectionsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0); }
  void TearDown() override {
    for (const int end : ends_) close(end);
  }

  // Serves the first socket in another thread, as a connection that ends when its socket does.
  template <typename Body>
  std::thread Serve(Body body) {
    EXPECT_TRUE(connections_.Add(ends_[0]));
    return std::thread([this, body] {
      body(ends_[0]);
      connections_.Remove(ends_[0]);
    });
  }

  int ends_[2] = {-1, -1};
  HttpConnections connections_;
};

TEST_F(HttpConnectionsTest, EndsOneThatWaitsForARequestAtOnce) {
  std::thread server = Serve([](int socket) {
    char byte;
    EXPECT_EQ(recv(socket, &byte, 1, 0), 0);
  });
  const auto begin = Clock::now();
  connections_.End(milliseconds(60'000));
  EXPECT_LT(Clock::now() - begin, milliseconds(30'000)) << "it did not wait for the patience to end";
  server.join();
}

TEST_F(HttpConnectionsTest, LetsAReplyUnderWayBeTaken) {
  std::thread server = Serve([](int socket) {
    char byte;
    EXPECT_EQ(recv(socket, &byte, 1, 0), 0);  // it is ending
    EXPECT_EQ(send(socket, "reply", 5, MSG_NOSIGNAL), 5);
  });
  connections_.End(milliseconds(60'000));
  server.join();
  char reply[5];
  EXPECT_EQ(recv(ends_[1], reply, sizeof reply, 0), 5);
}

TEST_F(HttpConnectionsTest, CutsOffWhoDoesNotTakeItsReply) {
  std::thread server = Serve([](int socket) {
    const std::string much(1 << 20, 'x');
    while (send(socket, much.data(), much.size(), MSG_NOSIGNAL) > 0) {
    }
  });
  connections_.End(milliseconds(20));
  server.join();
}

TEST_F(HttpConnectionsTest, ServesNobodyAfterTheEnd) {
  connections_.End(milliseconds(0));
  EXPECT_FALSE(connections_.Add(ends_[0]));
}

}  // namespace
}  // namespace pawl
