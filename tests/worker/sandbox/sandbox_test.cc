#include "worker/sandbox/sandbox.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sync/steady_time.h"
#include "pawl/v1/builder.pb.h"
#include "worker/process/child_process.h"

namespace pawl {
namespace {

namespace fs = std::filesystem;

// A child that has entered a sandbox; each test asks it what it sees.
class Sandbox : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::path(testing::TempDir()) / "pawl-sandbox-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = fs::canonical(pattern);
    for (const char* name : {"shown", "hidden"}) {
      fs::create_directory(folder_ / name);
      std::ofstream(folder_ / name / "file") << "x";
    }
    ChildOptions options;
    options.argv = {fs::read_symlink("/proc/self/exe").parent_path() / "pawl-test-child", "--sandbox",
                    folder_ / "shown"};
    absl::StatusOr<std::unique_ptr<ChildProcess>> child = ChildProcess::Start(options);
    ASSERT_TRUE(child.ok()) << child.status();
    child_ = *std::move(child);
    v1::BuildReply hello;
    ASSERT_TRUE(child_->Receive(&hello, SteadyNow() + absl::Seconds(60)).ok());
    if (!hello.host_error().empty()) GTEST_SKIP() << hello.host_error();
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Ask(const std::string& name, const std::string& source = "") {
    v1::BuildRequest request;
    request.set_name(name);
    request.set_source(source);
    v1::BuildReply reply;
    const SteadyTime deadline = SteadyNow() + absl::Seconds(60);
    absl::Status status = child_->Send(request, deadline);
    if (status.ok()) status = child_->Receive(&reply, deadline);
    return status.ok() ? reply.log() : status.ToString();
  }

  fs::path folder_;
  std::unique_ptr<ChildProcess> child_;
};

constexpr char kNotThere[] = "No such file or directory";

TEST_F(Sandbox, HidesEverythingThatIsNoPartOfTheSystemsTools) {
  for (const std::string path : {"/etc/passwd", "/etc/hostname", "/home", "/root", "/var", "/proc/self/environ",
                                 "/proc/1/environ", "/sys", "/run", "/usr/local", "/usr/share", "/dev/shm", "/mnt"}) {
    EXPECT_EQ(Ask("read", path), kNotThere) << path;
  }
  EXPECT_EQ(Ask("read", folder_ / "hidden/file"), kNotThere);
  EXPECT_EQ(Ask("read", fs::read_symlink("/proc/self/exe")), kNotThere);
  EXPECT_EQ(Ask("read", std::string(getenv("PAWL_SOURCE_DIR")) + "/CMakeLists.txt"), kNotThere);
}

TEST_F(Sandbox, ShowsTheSystemsToolsAndWhatItIsTold) {
  EXPECT_EQ(Ask("read", "/bin/sh"), "opened");
  EXPECT_EQ(Ask("read", "/usr/bin/env"), "opened");
  EXPECT_EQ(Ask("read", "/dev/null"), "opened");
  EXPECT_EQ(Ask("read", folder_ / "shown/file"), "opened");
}

TEST_F(Sandbox, CanBeWrittenToOnlyInItsPrivateTemporaryFolder) {
  EXPECT_EQ(Ask("create", "/tmp/pawl-sandbox-test-file"), "opened");
  EXPECT_FALSE(fs::exists("/tmp/pawl-sandbox-test-file"));
  EXPECT_NE(Ask("create", "/file"), "opened");
  EXPECT_NE(Ask("create", "/usr/lib/pawl-sandbox-test-file"), "opened");
  EXPECT_NE(Ask("create", folder_ / "shown/new"), "opened");
  EXPECT_NE(Ask("create", folder_ / "shown/file"), "opened");
}

TEST_F(Sandbox, HasNoNetwork) { EXPECT_EQ(Ask("connect"), "Network is unreachable"); }

TEST_F(Sandbox, SeesNoProcessesButItsOwn) { EXPECT_EQ(Ask("process id"), "2"); }

TEST_F(Sandbox, EndsAsTheProcessInsideEnds) {
  EXPECT_NE(Ask("die").find("died of signal 6"), std::string::npos);
  EXPECT_EQ(child_->end()->signal, SIGABRT);
}

TEST_F(Sandbox, EndsWithTheCodeOfTheProcessInside) {
  EXPECT_NE(Ask("exit").find("exited with code 5"), std::string::npos);
}

TEST_F(Sandbox, LeavesNothingBehindWhenItsOutermostProcessIsKilled) {
  // Descriptors tell: a process that lived on would hold the write end of the reply pipe.
  Ask("leave a process");
  kill(child_->pid(), SIGKILL);  // not the group
  v1::BuildReply reply;
  EXPECT_TRUE(absl::IsUnavailable(child_->Receive(&reply, SteadyNow() + absl::Seconds(60))));
}

}  // namespace
}  // namespace pawl
