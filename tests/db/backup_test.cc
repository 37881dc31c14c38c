#include "db/backup.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "db/sqlite.h"
#include "db/store.h"
#include "tests/db/faulty_disk.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

class BackupTest : public ::testing::Test {
 protected:
  BackupTest() : folder_("pawl-backup-"), file_(folder_.path() / "pawl.db"), copy_(folder_.path() / "copy.db") {
    store_ = OpenStore({.file = file_});
    Write(0);
  }

  void Write(int number) {
    Writes writes = MakeWrites(MakeJudged(1, MakeIteration(1, number, v1::KEPT)));
    writes.events.push_back(MakeProposal(1, std::string(2000, 'x')));
    ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  }

  TemporaryFolder folder_;
  std::filesystem::path file_, copy_;
  std::unique_ptr<Store> store_;
};

TEST_F(BackupTest, CopiesWhileWritingGoesOn) {
  for (int i = 1; i < 500; ++i) Write(i);
  std::atomic<int> written = 500;
  std::atomic<bool> done = false;
  std::thread writer([&] {
    while (!done) Write(written++);
  });
  for (int i = 0; i < 5; ++i) {
    const std::filesystem::path copy = folder_.path() / ("copy" + std::to_string(i) + ".db");
    const int before = written;
    while (written <= before) std::this_thread::yield();  // it is writing
    ASSERT_EQ(store_->Backup(copy), absl::OkStatus());
    const int after = written;
    auto restored = OpenStore({.file = copy});
    const auto events = restored->Events(1, 0, 1000000).value();
    const auto iterations = restored->ListIterations({.campaign = 1, .limit = 1000000}).value();
    EXPECT_EQ(events.size(), 2 * iterations.size()) << "half a transaction";
    EXPECT_GE(static_cast<int>(iterations.size()), before);
    EXPECT_LE(static_cast<int>(iterations.size()), after);
    for (size_t j = 0; j < events.size(); ++j) ASSERT_EQ(events[j].sequence(), static_cast<int64_t>(j + 1));
    EXPECT_EQ(restored->secret(), store_->secret());
  }
  done = true;
  writer.join();
}

TEST_F(BackupTest, MakesOneFileThatOnlyItsOwnerReads) {
  ASSERT_EQ(store_->Backup(copy_), absl::OkStatus());
  struct stat info;
  ASSERT_EQ(stat(copy_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    files += entry.path().filename().native().starts_with("copy");
  }
  EXPECT_EQ(files, 1);
}

TEST_F(BackupTest, OverwritesNothing) {
  std::ofstream(copy_) << "mine";
  const absl::Status status = store_->Backup(copy_);
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_NE(status.message().find("name a new file"), std::string::npos) << status;
  std::ifstream text(copy_);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(text), {}), "mine");
  EXPECT_EQ(store_->Backup(file_).code(), absl::StatusCode::kAlreadyExists);
}

// As on NFS, where a rename can't be told not to replace, and on a file system without hard links.
TEST_F(BackupTest, NamesAFileWhereTheFileSystemLacksTheCallForIt) {
  const auto fails = [](int error) {
    return [error](const char*, const char*) {
      errno = error;
      return -1;
    };
  };
  const std::filesystem::path part = copy_.native() + ".part";
  for (const NamingCalls& calls : {NamingCalls{.rename_to_new = fails(EINVAL), .link = nullptr},
                                   NamingCalls{.rename_to_new = fails(EINVAL), .link = fails(EPERM)},
                                   NamingCalls{.rename_to_new = fails(ENOSYS), .link = fails(EOPNOTSUPP)}}) {
    std::ofstream(part) << "whole";
    ASSERT_EQ(PublishFile(part, copy_, calls), absl::OkStatus());
    EXPECT_EQ(std::filesystem::file_size(copy_), 5u);
    EXPECT_FALSE(std::filesystem::exists(part));
    std::ofstream(part) << "another";
    EXPECT_EQ(PublishFile(part, copy_, calls).code(), absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(std::filesystem::file_size(copy_), 5u) << "nothing is overwritten";
    std::filesystem::remove(copy_);
  }
  EXPECT_EQ(PublishFile(part, copy_, {.rename_to_new = fails(EACCES), .link = nullptr}).code(),
            absl::StatusCode::kUnavailable)
      << "another error is an error";
  EXPECT_EQ(PublishFile(part, copy_, {.rename_to_new = fails(EINVAL), .link = fails(EIO)}).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(copy_));
}

TEST_F(BackupTest, AnArchiveThatCouldNotBeFinishedLeavesNoFile) {
  v1::Campaign campaign;
  campaign.set_name("campaigns/1");
  campaign.set_state(v1::FINISHED);
  Writes writes;
  writes.campaigns.push_back(campaign);
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  // Of a store whose check for damage goes on: nothing can be written.
  ASSERT_EQ(store_->Backup(folder_.path() / "unclosed.db"), absl::OkStatus());
  absl::Notification begun, go_on;
  auto checked = OpenStore(
      {.file = folder_.path() / "unclosed.db", .check_patience = std::chrono::milliseconds(1), .check_begins = [&] {
         begun.Notify();
         go_on.WaitForNotification();
       }});
  begun.WaitForNotification();
  const auto page = [](int64_t) -> absl::StatusOr<std::string> { return "a page"; };
  const absl::Status refused = checked->MoveOut({1}, copy_, 1, page).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable) << refused;
  EXPECT_FALSE(std::filesystem::exists(copy_));
  go_on.Notify();
  absl::Status moved = absl::UnavailableError("not yet");
  for (int i = 0; i < 1000 && absl::IsUnavailable(moved); ++i) {
    moved = checked->MoveOut({1}, copy_, 1, page).status();
    std::this_thread::yield();
  }
  EXPECT_EQ(moved, absl::OkStatus()) << "with the same name";
}

TEST(ArchiveTest, NamesTheFileWhoseDiskIsFull) {
  FaultyDisk disk;
  const TemporaryFolder folder("pawl-archive-");
  const std::filesystem::path file = folder.path() / "spring.pawl";
  auto store = Store::Open({.file = folder.path() / "pawl.db"}).value();
  v1::Campaign campaign;
  campaign.set_name("campaigns/1");
  campaign.set_state(v1::FINISHED);
  Writes writes;
  writes.campaigns.push_back(campaign);
  ASSERT_EQ(store->Commit(&writes), absl::OkStatus());
  const auto page = [](int64_t) -> absl::StatusOr<std::string> { return "a page"; };
  for (const auto& [code, said] : {std::pair{SQLITE_FULL, "no space is left for database "},
                                   std::pair{SQLITE_IOERR_WRITE, "the disk failed under database "}}) {
    disk.FailWrites(code);
    const absl::Status failed = store->MoveOut({1}, file, 1, page).status();
    EXPECT_EQ(failed.code(), absl::StatusCode::kUnavailable) << failed;
    EXPECT_EQ(std::string(failed.message()).rfind(said + file.native() + ":", 0), 0u) << failed;
    disk.Heal();
  }
  EXPECT_EQ(store->MoveOut({1}, file, 1, page).status(), absl::OkStatus());
}

TEST_F(BackupTest, StartsAnewWhereAnEarlierOneWasCutShort) {
  std::ofstream(copy_.native() + ".part") << "half a copy";
  ASSERT_EQ(store_->Backup(copy_), absl::OkStatus());
  EXPECT_EQ(OpenStore({.file = copy_})->Events(1, 0, 10)->size(), 2u);
}

TEST_F(BackupTest, CopiesADatabaseThatAnotherProcessOwns) {
  // The store holds its lock all the while.
  ASSERT_EQ(BackUp(file_, copy_), absl::OkStatus());
  EXPECT_EQ(OpenStore({.file = copy_})->Events(1, 0, 10)->size(), 2u);
  Write(1);
}

TEST_F(BackupTest, SaysWhatItCannotCopyOrWrite) {
  EXPECT_EQ(BackUp(folder_.path() / "none.db", copy_).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->Backup(folder_.path() / "none" / "copy.db").code(), absl::StatusCode::kUnavailable);
  std::ofstream(folder_.path() / "text") << std::string(5000, 'x');
  EXPECT_EQ(BackUp(folder_.path() / "text", copy_).code(), absl::StatusCode::kFailedPrecondition);
  {
    auto other = SqliteConnection::Open(folder_.path() / "other.db", SqliteConnection::Mode::kWrite, 0).value();
    ASSERT_EQ(other->Execute("CREATE TABLE t (i)"), absl::OkStatus());
  }
  EXPECT_EQ(BackUp(folder_.path() / "other.db", copy_).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(copy_));
  EXPECT_FALSE(std::filesystem::exists(copy_.native() + ".part"));
}

}  // namespace
}  // namespace pawl
