#include "db/lock_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/promises/soak.h"
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
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists);
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
  EXPECT_EQ(DatabaseLock::Acquire(folder_.path() / "link.db").status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(AddressOfOwner(folder_.path() / "link.db"), "localhost:1");
}

// Another process, so that closing its descriptors does not touch this one's.
absl::Status AcquiredByAnother(const std::filesystem::path& database) {
  int answer[2];
  EXPECT_EQ(pipe(answer), 0);
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = DatabaseLock::Acquire(database).status();
    const std::string text = std::string(1, static_cast<char>(status.code())) + std::string(status.message());
    _exit(write(answer[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(answer[1]);
  char text[4096];
  const ssize_t size = read(answer[0], text, sizeof text);
  close(answer[0]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_GT(size, 0);
  return size <= 0 ? absl::InternalError("no answer")
                   : absl::Status(static_cast<absl::StatusCode>(text[0]), std::string(text + 1, size - 1));
}

TEST_F(LockFileTest, KeepsASecondOwnerOutByEveryNameOfTheFile) {
  auto lock = DatabaseLock::Acquire(database_);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const std::filesystem::path other = folder_.path() / "other.db";
  const std::string process = "process " + std::to_string(getpid()) + ")";

  int refused = 0;
  std::filesystem::create_hard_link(database_, other);
  absl::Status second = AcquiredByAnother(other);
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << "a hard link";
  refused += absl::IsAlreadyExists(second);
  EXPECT_NE(second.message().find(process), std::string::npos) << second;
  std::filesystem::remove(other);

  std::filesystem::remove(database_.native() + ".lock");
  second = AcquiredByAnother(database_);
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << "a lock file less";
  refused += absl::IsAlreadyExists(second);

  std::filesystem::rename(database_, other);
  second = AcquiredByAnother(other);
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << "another name";
  refused += absl::IsAlreadyExists(second);
  lock->reset();
  EXPECT_EQ(AcquiredByAnother(other), absl::OkStatus());
  ReportPromise(22, "a second owner by a hard link, without the lock file and by a new name: refused " +
                        std::to_string(refused) + " times");
}

TEST_F(LockFileTest, RefusesAFileWithTwoNames) {
  ASSERT_TRUE(DatabaseLock::Acquire(database_).ok());
  std::filesystem::create_hard_link(database_, folder_.path() / "other.db");
  const absl::Status status = DatabaseLock::Acquire(database_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("has 2 names"), std::string::npos) << status;
}

TEST_F(LockFileTest, KnowsWhetherTheLastOwnerClosedTheDatabase) {
  EXPECT_FALSE(DatabaseLock::Acquire(database_).value()->closed_before()) << "there was none";
  {
    auto lock = DatabaseLock::Acquire(database_).value();
    EXPECT_FALSE(lock->closed_before()) << "it did not say so";
    ASSERT_EQ(lock->NoteClosed(), absl::OkStatus());
  }
  {
    auto lock = DatabaseLock::Acquire(database_).value();
    EXPECT_TRUE(lock->closed_before());
    ASSERT_EQ(lock->NoteClosed(), absl::OkStatus());
  }
  std::ofstream(database_) << "changed by another program";
  EXPECT_FALSE(DatabaseLock::Acquire(database_).value()->closed_before());
}

TEST_F(LockFileTest, RefusesADatabaseThatIsMissingOrEmptyBesideItsLog) {
  const std::filesystem::path log = database_.native() + "-wal";
  std::ofstream(log) << "changes";
  for (const bool empty : {false, true}) {
    if (empty) std::ofstream(database_).close();
    const absl::Status status = DatabaseLock::Acquire(database_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find(empty ? "is empty" : "is missing"), std::string::npos) << status;
    EXPECT_NE(status.message().find("put the database file back"), std::string::npos) << status;
    EXPECT_EQ(std::filesystem::file_size(log), 7u);
  }
  std::ofstream(log, std::ios::trunc).close();
  EXPECT_TRUE(DatabaseLock::Acquire(database_).ok()) << "an empty log holds nothing";
}

TEST_F(LockFileTest, RefusesADatabaseThatWasReplacedBesideTheLogOfTheOldOne) {
  const std::filesystem::path log = database_.native() + "-wal", other = folder_.path() / "other.db";
  std::ofstream(database_) << "old";
  std::ofstream(log) << "changes of the old one";
  ASSERT_EQ(DatabaseLock::Acquire(database_).value()->NoteWal(), absl::OkStatus());
  EXPECT_TRUE(DatabaseLock::Acquire(database_).ok()) << "the same two files";
  ASSERT_EQ(DatabaseLock::Acquire(database_).value()->NoteWal(), absl::OkStatus());
  std::ofstream(other) << "new";
  std::filesystem::rename(other, database_);
  const absl::Status status = DatabaseLock::Acquire(database_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("was replaced"), std::string::npos) << status;
  EXPECT_EQ(DatabaseLock::Acquire(database_).status().code(), absl::StatusCode::kFailedPrecondition) << "it stays so";
  std::filesystem::remove(log);
  EXPECT_TRUE(DatabaseLock::Acquire(database_).ok());
}

TEST_F(LockFileTest, SaysWhyItCannotBeMade) {
  const absl::Status status = DatabaseLock::Acquire(folder_.path() / "none" / "a.db").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("No such file or directory"), std::string::npos) << status;
}

}  // namespace
}  // namespace pawl
