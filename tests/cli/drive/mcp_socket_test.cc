#include "cli/drive/mcp_socket.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "agent/mcp/server.h"
#include "tests/agent/suite_features.h"
#include "tests/instrumented.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

constexpr rlim_t kStack = 8 << 20;  // of a thread

// While it lives, threads get stacks so large that none is taken from those of ended threads, nor kept for others.
class FreshStacks {
 public:
  static constexpr rlim_t kSize = 64 << 20;
  FreshStacks() {
    pthread_getattr_default_np(&usual_);
    pthread_attr_t large = usual_;
    pthread_attr_setstacksize(&large, kSize);
    pthread_setattr_default_np(&large);
  }
  ~FreshStacks() {
    pthread_setattr_default_np(&usual_);
    pthread_attr_destroy(&usual_);
  }

 private:
  pthread_attr_t usual_;
};

class McpSocketTest : public testing::Test {
 protected:
  Fd Connect() const {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.string().copy(address.sun_path, sizeof address.sun_path - 1);
    Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return fd;
  }
  // Empty: the connection was closed.
  static std::string Ping(const Fd& fd) {
    const std::string request = R"({"jsonrpc":"2.0","id":1,"method":"ping"})" + std::string("\n");
    QuietWrite(fd.get(), request.data(), request.size());
    char block[1000];
    const ssize_t size = read(fd.get(), block, sizeof block);
    return std::string(block, size > 0 ? static_cast<size_t>(size) : 0);
  }
  // One that was refused is free again when its thread has ended.
  bool IsServedSoon() const {
    for (int i = 0; i < 1000; ++i) {
      if (!Ping(Connect()).empty()) return true;
      usleep(10'000);
    }
    return false;
  }
  static rlim_t AddressSpace() {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
  }

  const TemporaryFolder folder_{"pawl-socket-"};
  const std::filesystem::path path_ = folder_.path() / "mcp";
  const SuiteFeatures features_;
  const McpServer server_{features_};
};

TEST_F(McpSocketTest, ServesSomeConnectionsAtATimeAndClosesMore) {
  const std::unique_ptr<McpSocket> socket = *McpSocket::Open(path_, server_);
  std::vector<Fd> served;
  for (int i = 0; i < 16; ++i) {
    served.push_back(Connect());
    EXPECT_NE(Ping(served.back()), "");
  }
  EXPECT_EQ(Ping(Connect()), "");
  EXPECT_NE(Ping(served[0]), "");
  served.pop_back();
  EXPECT_TRUE(IsServedSoon());
}

// A thread's stack is there until it is joined.
TEST_F(McpSocketTest, KeepsNothingOfConnectionsThatHaveEnded) {
  const std::unique_ptr<McpSocket> socket = *McpSocket::Open(path_, server_);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(IsServedSoon());
  const rlim_t before = AddressSpace();
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(IsServedSoon());
  EXPECT_LT(AddressSpace(), before + 100 * kStack);
}

TEST_F(McpSocketTest, RefusesAConnectionForWhichThereIsNoThread) {
  if (kSlowdown > 1) GTEST_SKIP() << "an instrumented program needs its address space";
  const FreshStacks stacks;
  const std::unique_ptr<McpSocket> socket = *McpSocket::Open(path_, server_);
  rlimit usual;
  getrlimit(RLIMIT_AS, &usual);
  // Of five threads that a connection takes, the first, the second and so on can't be started.
  for (rlim_t threads = 0; threads < 5; ++threads) {
    rlimit little = usual;
    little.rlim_cur = AddressSpace() + threads * FreshStacks::kSize + FreshStacks::kSize / 2;
    setrlimit(RLIMIT_AS, &little);
    std::vector<Fd> connections;
    for (int i = 0; i < 4; ++i) connections.push_back(Connect());
    const std::string last = Ping(connections.back());
    setrlimit(RLIMIT_AS, &usual);
    if (threads == 0) EXPECT_EQ(last, "");
    connections.clear();
    EXPECT_TRUE(IsServedSoon()) << threads;
  }
}

}  // namespace
}  // namespace pawl
