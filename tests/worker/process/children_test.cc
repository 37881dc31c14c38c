#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "worker/process/process.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

// The shell says the id of a grandchild of its group, then waits.
TEST(KillChildren, TakesTheirProcessGroupsAlong) {
  absl::StatusOr<Pipe> pipe = MakePipe();
  ASSERT_TRUE(pipe.ok());
  SpawnOptions options;
  options.argv = {"sh", "-c", "sleep 100 & echo $!; wait"};
  options.fds = {{0, 0}, {pipe->write.get(), 1}, {2, 2}};
  const absl::StatusOr<pid_t> child = Spawn(options);
  ASSERT_TRUE(child.ok()) << child.status();
  pipe->write.Reset();
  char text[32] = "";
  ASSERT_GT(read(pipe->read.get(), text, sizeof(text) - 1), 0);
  const pid_t grandchild = std::stoi(text);
  ASSERT_EQ(kill(grandchild, 0), 0);

  KillChildren();
  EXPECT_EQ(Reap(*child).signal, SIGKILL);
  // Its end of the pipe closes when the grandchild is gone, too.
  EXPECT_EQ(read(pipe->read.get(), text, sizeof(text)), 0);
}

}  // namespace
}  // namespace pawl
