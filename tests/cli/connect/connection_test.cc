#include "cli/connect/connection.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "cli/connect/bundle_path.h"
#include "cli/connect/lock_file.h"
#include "cli/text/failure.h"
#include "tests/cli/pawl_program.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Programs of a test's own in the place of Pawl's.
class ConnectionTest : public testing::Test {
 protected:
  ConnectionTest() {
    settings_.database = folder_.path() / "pawl.db";
    if (const char* before = getenv("PAWL_BIN_DIR")) bin_before_ = before;
    setenv("PAWL_BIN_DIR", folder_.path().c_str(), 1);
  }
  ~ConnectionTest() override { setenv("PAWL_BIN_DIR", bin_before_.c_str(), 1); }

  void Program(const std::string& name, const std::string& script) const {
    const std::filesystem::path file = folder_.path() / name;
    std::ofstream(file) << "#!/bin/sh\n" << script;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  Fd Lock(const std::string& text) const {
    Fd file(open(LockFilePath(settings_.database).c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600));
    EXPECT_EQ(flock(file.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return file;
  }

  const TemporaryFolder folder_{"pawl-connection-"};
  Settings settings_;
  std::string bin_before_;
};

TEST_F(ConnectionTest, FindsTheHolderOfTheLock) {
  EXPECT_FALSE(FindLockHolder(settings_.database).has_value());
  {
    const Fd lock = Lock("1234\nunix:/tmp/x.sock\n");
    const std::optional<LockHolder> holder = FindLockHolder(settings_.database);
    ASSERT_TRUE(holder.has_value());
    EXPECT_EQ(holder->pid, 1234);
    EXPECT_EQ(holder->address, "unix:/tmp/x.sock");
  }
  EXPECT_FALSE(FindLockHolder(settings_.database).has_value()) << "what a dead one left behind does not count";
  const Fd lock = Lock("1234\n\n");
  ASSERT_TRUE(FindLockHolder(settings_.database).has_value());
  EXPECT_EQ(FindLockHolder(settings_.database)->address, "");
}

TEST_F(ConnectionTest, GoesWhereTheLockFilePoints) {
  const Fd lock = Lock("1234\nunix:/tmp/x.sock\n");
  for (Need need : {Need::kCampaigns, Need::kDatabase, Need::kRunning}) {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings_, need);
    ASSERT_TRUE(connection.ok());
    EXPECT_EQ((*connection)->address(), "unix:/tmp/x.sock");
    EXPECT_FALSE((*connection)->own());
  }
}

TEST_F(ConnectionTest, GoesWhereItIsTold) {
  const Fd lock = Lock("1234\nunix:/tmp/x.sock\n");
  settings_.orchestrator = "localhost:7070";
  EXPECT_EQ((*Connection::Open(settings_, Need::kRunning))->address(), "localhost:7070");
}

TEST_F(ConnectionTest, GoesToAnotherMachineWithTlsOnly) {
  settings_.orchestrator = "host:7070";
  EXPECT_THAT(std::string(Connection::Open(settings_, Need::kRunning).status().message()), HasSubstr("--tls-ca"));
  std::ofstream(folder_.path() / "ca.crt") << "-----BEGIN CERTIFICATE-----\n";
  settings_.credentials.tls.ca = folder_.path() / "ca.crt";
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings_, Need::kRunning);
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ((*connection)->address(), "host:7070");
}

TEST_F(ConnectionTest, MakesNoDatabaseToLookInto) {
  const absl::Status status = Connection::Open(settings_, Need::kCampaigns).status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(FailureText(status), HasSubstr("no campaigns yet"));
  EXPECT_THAT(FailureText(status), HasSubstr("pawl run BUNDLE"));
  EXPECT_FALSE(std::filesystem::exists(settings_.database));
  EXPECT_THAT(FailureText(Connection::Open(settings_, Need::kRunning).status()), HasSubstr("no orchestrator serves"));
}

TEST_F(ConnectionTest, StartsAnOrchestratorOfItsOwnAndStopsIt) {
  Program("pawl-orchestrator", "echo \"$@\" >&2; echo ready; exec sleep 1000\n");
  const std::filesystem::path log = folder_.path() / "log";
  pid_t pid = 0;
  {
    absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings_, Need::kDatabase, log);
    ASSERT_TRUE(connection.ok()) << connection.status();
    EXPECT_TRUE((*connection)->own());
    std::string line;
    std::getline(std::ifstream(log) >> std::ws, line);
    EXPECT_THAT(line, HasSubstr("--database " + settings_.database.string()));
    EXPECT_THAT(line, HasSubstr("--listen " + (*connection)->address() + " "));
    EXPECT_THAT((*connection)->address(), StartsWith("unix:/"));
    EXPECT_TRUE((*connection)->Reopen(Need::kDatabase).ok()) << "it lives";
  }
  EXPECT_EQ(waitpid(-1, &pid, WNOHANG), -1) << "no child is left";
}

TEST_F(ConnectionTest, SaysWhatAnOrchestratorThatDoesNotStartSaid) {
  Program("pawl-orchestrator", "echo the disk is full >&2; exit 3\n");
  const absl::Status status = Connection::Open(settings_, Need::kDatabase, folder_.path() / "log").status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("pawl-orchestrator exited with code 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("the disk is full"));
}

TEST_F(ConnectionTest, SharesTheOrchestratorThatWasFaster) {
  // Another command takes the database between our look and our start.
  Program("pawl-orchestrator", "echo whatever it says >&2; printf '%s\\n' taken > " + (folder_.path() / "go").string() +
                                   "; while [ ! -s " + LockFilePath(settings_.database).string() +
                                   " ]; do sleep 0.01; done; exit 75\n");
  const pid_t other = fork();
  if (other == 0) {
    while (access((folder_.path() / "go").c_str(), F_OK) != 0) usleep(1000);
    const Fd lock = Lock("99\nunix:/tmp/other.sock\n");
    while (true) pause();
  }
  ASSERT_GT(other, 0);
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(settings_, Need::kDatabase);
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  ASSERT_TRUE(connection.ok()) << connection.status();
  EXPECT_EQ((*connection)->address(), "unix:/tmp/other.sock");
  EXPECT_FALSE((*connection)->own());
}

TEST_F(ConnectionTest, DaemonsAreKilledWhenTheyDoNotEnd) {
  Program("pawl-worker", "trap '' TERM; sleep 1000 & echo $!; wait; wait\n");
  absl::StatusOr<std::unique_ptr<Daemon>> daemon =
      Daemon::Start({.program = "pawl-worker", .arguments = {}, .log = folder_.path() / "log", .announces = true});
  ASSERT_TRUE(daemon.ok()) << daemon.status();
  const pid_t grandchild = atoi((*daemon)->FirstLine(absl::Seconds(10))->c_str());
  ASSERT_FALSE(IsGone(grandchild));
  EXPECT_TRUE((*daemon)->alive());
  (*daemon)->Stop(absl::Milliseconds(50));
  EXPECT_FALSE((*daemon)->alive());

  EXPECT_TRUE(EndsSoon(grandchild)) << "nothing of its group is left";
  EXPECT_THAT((*daemon)->Obituary(), HasSubstr("died of signal 9"));
}

TEST_F(ConnectionTest, DaemonsDieWithTheCommandThatWasKilled) {
  Program("pawl-worker", "echo $$; exec sleep 1000\n");
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t command = fork();
  if (command == 0) {
    absl::StatusOr<std::unique_ptr<Daemon>> daemon =
        Daemon::Start({.program = "pawl-worker", .arguments = {}, .log = folder_.path() / "log", .announces = true});
    const pid_t pid = atoi((*daemon)->FirstLine(absl::Seconds(10))->c_str());
    (void)!write(out[1], &pid, sizeof(pid));
    while (true) pause();
  }
  ASSERT_GT(command, 0);
  pid_t daemon = 0;
  ASSERT_EQ(read(out[0], &daemon, sizeof(daemon)), static_cast<ssize_t>(sizeof(daemon)));
  ASSERT_EQ(kill(daemon, 0), 0);
  kill(command, SIGKILL);
  waitpid(command, nullptr, 0);

  EXPECT_TRUE(EndsSoon(daemon));
  close(out[0]);
  close(out[1]);
}

// As somebody writes it who has the package, not the source.
TEST(BundlePathTest, SaysWhichOnesShipWhereThereIsNoSuchFolder) {
  EXPECT_THAT(BundleMeant("no-such-folder/attention"),
              AllOf(HasSubstr("Bundles that ship with Pawl, by their names alone: "), HasSubstr("softmax")));
}

TEST(BundlePathTest, FindsFoldersAndShippedBundles) {
  const TemporaryFolder folder("pawl-bundles-");
  const std::filesystem::path tree = folder.path() / "tree", package = folder.path() / "package";
  for (const std::filesystem::path& bundle :
       {tree / "kernels/attention", package / "share/pawl/kernels/softmax", tree / "kernels/empty"}) {
    std::filesystem::create_directories(bundle);
    if (bundle.filename() != "empty") std::ofstream(bundle / "kernel.toml") << "name = \"x\"\n";
  }
  EXPECT_EQ(BundlePath("attention", tree / "build/dev/bin/pawl"), tree / "kernels/attention");
  EXPECT_EQ(BundlePath("softmax", package / "bin/pawl"), package / "share/pawl/kernels/softmax");
  EXPECT_EQ(BundlePath("softmax", tree / "build/dev/bin/pawl"), "softmax") << "no such one ships";
  EXPECT_EQ(BundlePath("empty", tree / "bin/pawl"), "empty");
  EXPECT_EQ(BundlePath("./attention", tree / "bin/pawl"), "./attention") << "a path is no name";
  EXPECT_EQ(BundlePath("", tree / "bin/pawl"), "");
}

}  // namespace
}  // namespace pawl
