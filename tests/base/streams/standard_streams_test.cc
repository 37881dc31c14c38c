#include "base/streams/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>

namespace pawl {
namespace {

// In a process of its own, whose streams these are.
int CodeOf(const std::function<int()>& act) {
  const pid_t child = fork();
  if (child == 0) _exit(act());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  return WEXITSTATUS(status);
}

TEST(StandardStreamsTest, OpensNoFileWhereAStreamWasClosed) {
  EXPECT_EQ(CodeOf([] {
              close(STDOUT_FILENO);
              close(STDERR_FILENO);
              PrepareStreams();
              return open("/dev/zero", O_RDONLY) > STDERR_FILENO ? 0 : 1;
            }),
            0);
}

TEST(StandardStreamsTest, LeavesOpenStreamsAlone) {
  EXPECT_EQ(CodeOf([] {
              const int before = dup(STDOUT_FILENO);
              PrepareStreams();
              return dup(STDOUT_FILENO) == before + 1 ? 0 : 1;
            }),
            0);
}

TEST(StandardStreamsTest, EndsNoProcessWhoseFileMayNotGrow) {
  EXPECT_EQ(CodeOf([] {
              PrepareStreams();
              char name[] = "/tmp/pawl-streams-XXXXXX";
              const int file = mkstemp(name);
              unlink(name);
              const rlimit none = {0, 0};
              setrlimit(RLIMIT_FSIZE, &none);
              return file >= 0 && write(file, "x", 1) < 0 && errno == EFBIG ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace pawl
