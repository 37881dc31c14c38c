#include "db/lock_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

class LockFileTest : public ::testing::Test {
 protected:
  LockFileTest() : folder_("pawl-lock-"), database_(folder_.path() / "a.db") {}

  TemporaryFolder folder_;
  std::filesystem::path database_;
};

TEST_F(LockFileTest, KeepsASecondOwnerOutAndSaysWhoTheFirstIs) {
  auto first = DatabaseLock::Acquire(database_);
  ASSERT_TRUE(first.ok()) << first.status();
  absl::Status second = DatabaseLock::Acquire(database_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(second.message().find("process " + std::to_string(getpid()) + ")"), std::string::npos) << second;

  ASSERT_EQ((*first)->SetAddress("unix:/run/pawl.sock"), absl::OkStatus());
  second = DatabaseLock::Acquire(database_).status();
  EXPECT_NE(second.message().find("listening on unix:/run/pawl.sock"), std::string::npos) << second;

  first->reset();
  EXPECT_TRUE(DatabaseLock::Acquire(database_).ok());
}

TEST_F(LockFileTest, KnowsTheAddressWhileTheOwnerLives) {
  EXPECT_EQ(AddressOfOwner(database_), std::nullopt);
  {
    auto lock = DatabaseLock::Acquire(database_);
    ASSERT_TRUE(lock.ok());
    EXPECT_EQ(AddressOfOwner(database_), std::nullopt) << "it does not listen yet";
    ASSERT_EQ((*lock)->SetAddress("a-long-name.example:50051"), absl::OkStatus());
    EXPECT_EQ(AddressOfOwner(database_), "a-long-name.example:50051");
    ASSERT_EQ((*lock)->SetAddress("localhost:1"), absl::OkStatus());
    EXPECT_EQ(AddressOfOwner(database_), "localhost:1");
    std::ifstream text(database_.native() + ".lock");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(text), {}), std::to_string(getpid()) + "\nlocalhost:1\n");
  }
  EXPECT_EQ(AddressOfOwner(database_), std::nullopt);
}

TEST_F(LockFileTest, ForgetsAnOwnerThatWasKilled) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto lock = DatabaseLock::Acquire(database_);
    const bool ok = lock.ok() && (*lock)->SetAddress("localhost:1").ok();
    if (write(ready[1], ok ? "y" : "n", 1) == 1) pause();
    _exit(0);
  }
  char answer = 0;
  ASSERT_EQ(read(ready[0], &answer, 1), 1);
  EXPECT_EQ(answer, 'y');
  EXPECT_EQ(AddressOfOwner(database_), "localhost:1");
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(AddressOfOwner(database_), std::nullopt);
  EXPECT_TRUE(DatabaseLock::Acquire(database_).ok());
  close(ready[0]);
  close(ready[1]);
}

TEST_F(LockFileTest, TakesALinkForTheFileItLeadsTo) {
  std::ofstream(database_).close();
  std::filesystem::create_symlink(database_, folder_.path() / "link.db");
  auto lock = DatabaseLock::Acquire(database_);
  ASSERT_TRUE(lock.ok());
  ASSERT_EQ((*lock)->SetAddress("localhost:1"), absl::OkStatus());
  EXPECT_EQ(DatabaseLock::Acquire(folder_.path() / "link.db").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AddressOfOwner(folder_.path() / "link.db"), "localhost:1");
}

TEST_F(LockFileTest, SaysWhyItCannotBeMade) {
  const absl::Status status = DatabaseLock::Acquire(folder_.path() / "none" / "a.db").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("No such file or directory"), std::string::npos) << status;
}

}  // namespace
}  // namespace pawl
