// A disk or a file that does not do what the store needs: every failure has a status with advice, loses nothing that
// was acknowledged, and ends when its cause does.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "db/sqlite.h"
#include "db/store.h"
#include "tests/db/faulty_disk.h"
#include "tests/db/made_writes.h"
#include "tests/promises/soak.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

class StoreFailuresTest : public ::testing::Test {
 protected:
  StoreFailuresTest() : folder_("pawl-failures-"), file_(folder_.path() / "pawl.db") {}

  static absl::Status Commit(Store* store, const std::string& why) {
    Writes writes = MakeWrites(MakeProposal(1, why));
    return store->Commit(&writes);
  }
  static size_t Count(Store* store) { return store->Events(1, 0, 1000000)->size(); }

  static void ExpectUnavailable(const absl::Status& status, const std::string& part) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }
  absl::Status OpenStatus() const { return Store::Open({.file = file_, .busy_milliseconds = 10}).status(); }
  void ExpectRefused(const std::string& part) const {
    const absl::Status status = OpenStatus();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
};

TEST_F(StoreFailuresTest, GoesOnAfterTheDiskWasFull) {
  FaultyDisk disk;
  auto store = OpenStore({.file = file_});
  ASSERT_EQ(Commit(store.get(), "before"), absl::OkStatus());
  disk.FailWrites(SQLITE_FULL);
  ExpectUnavailable(Commit(store.get(), "lost"), "no space is left");
  ExpectUnavailable(store->Probe(), "no space is left");
  EXPECT_FALSE(store->uncertain());
  EXPECT_EQ(Count(store.get()), 1u) << "reading goes on";
  disk.Heal();
  EXPECT_EQ(store->Probe(), absl::OkStatus());
  ASSERT_EQ(Commit(store.get(), "after"), absl::OkStatus());
  store.reset();
  store = OpenStore({.file = file_});
  const auto events = store->Events(1, 0, 10).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].proposed().why(), "after");
  EXPECT_EQ(events[1].sequence(), 2);
}

TEST_F(StoreFailuresTest, GoesOnAfterTheFileReachedItsLimit) {
  auto store = OpenStore({.file = file_, .max_pages = 60});
  size_t written = 0;
  absl::Status status;
  while ((status = Commit(store.get(), std::string(5000, 'x'))).ok()) ASSERT_LT(++written, 60u);
  EXPECT_GT(written, 5u);
  ExpectUnavailable(status, "no space is left");
  ExpectUnavailable(store->Probe(), "no space is left");
  EXPECT_EQ(Count(store.get()), written);
  store.reset();
  store = OpenStore({.file = file_, .max_pages = 1000});
  EXPECT_EQ(Count(store.get()), written);
  EXPECT_EQ(Commit(store.get(), std::string(5000, 'x')), absl::OkStatus());
}

TEST_F(StoreFailuresTest, IsUncertainWhenACommitDidNotReachTheDisk) {
  FaultyDisk disk;
  auto store = OpenStore({.file = file_});
  ASSERT_EQ(Commit(store.get(), "before"), absl::OkStatus());
  disk.FailSyncs(SQLITE_IOERR_FSYNC);
  ExpectUnavailable(Commit(store.get(), "perhaps"), "the disk failed");
  EXPECT_TRUE(store->uncertain());
  ExpectUnavailable(store->Probe(), "the disk failed");
  disk.Heal();
  EXPECT_TRUE(store->uncertain()) << "until it is told that the state was read again";
  ASSERT_EQ(store->Probe(), absl::OkStatus());
  store->ClearUncertain();
  EXPECT_FALSE(store->uncertain());
  EXPECT_EQ(Count(store.get()), 1u);
  ASSERT_EQ(Commit(store.get(), "after"), absl::OkStatus());
  store.reset();
  store = OpenStore({.file = file_});
  const auto events = store->Events(1, 0, 10).value();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].proposed().why(), "after");
}

// Why a probe comes before reading the state again: it decides what a crash afterwards would find.
TEST_F(StoreFailuresTest, SettlesAnUncertainWriteWithAProbe) {
  for (const bool probe : {false, true}) {
    const std::filesystem::path file = folder_.path() / (probe ? "probed.db" : "crashed.db");
    const std::filesystem::path copy = folder_.path() / (probe ? "probed-copy.db" : "crashed-copy.db");
    FaultyDisk disk;
    auto store = OpenStore({.file = file});
    ASSERT_EQ(Commit(store.get(), "first"), absl::OkStatus());  // after which the log begins again
    ASSERT_EQ(Commit(store.get(), "before"), absl::OkStatus());
    disk.FailSyncs(SQLITE_IOERR_FSYNC);
    ASSERT_FALSE(Commit(store.get(), "perhaps").ok());
    disk.Heal();
    if (probe) {
      ASSERT_EQ(store->Probe(), absl::OkStatus());
    }
    // What is on the disk if the process dies now.
    std::filesystem::copy_file(file, copy);
    std::filesystem::copy_file(file.native() + "-wal", copy.native() + "-wal");
    EXPECT_EQ(Count(store.get()), 2u);
    EXPECT_EQ(Count(OpenStore({.file = copy}).get()), probe ? 2u : 3u);
  }
}

TEST_F(StoreFailuresTest, IsNotUncertainWhenItFailedBeforeTheCommit) {
  FaultyDisk disk;
  ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
  auto store = OpenStore({.file = file_, .check = false});  // its cache is cold: a commit has to read
  disk.FailReads(SQLITE_IOERR_READ);
  ExpectUnavailable(Commit(store.get(), "lost"), "the disk failed");
  EXPECT_FALSE(store->uncertain());
  disk.Heal();
  EXPECT_EQ(Commit(store.get(), "after"), absl::OkStatus());
  EXPECT_EQ(Count(store.get()), 2u);
}

TEST_F(StoreFailuresTest, HasForcedEveryCommitToTheDiskWhenItReturns) {
  FaultyDisk disk;
  auto store = OpenStore({.file = file_});
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(Commit(store.get(), std::string(5000, 'x')), absl::OkStatus());
    ASSERT_EQ(disk.unsynced(), 0);
  }
  // The measure itself works: without FULL something is left.
  auto careless = SqliteConnection::Open(folder_.path() / "careless.db", SqliteConnection::Mode::kWrite, 0);
  ASSERT_EQ((*careless)->Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; CREATE TABLE t (i)"),
            absl::OkStatus());
  EXPECT_GT(disk.unsynced(), 0);
}

TEST_F(StoreFailuresTest, WaitsForAnotherProcessesLockAndThenSaysSo) {
  auto store = OpenStore({.file = file_, .busy_milliseconds = 10});
  auto shell = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0);
  ASSERT_TRUE(shell.ok());
  ASSERT_EQ((*shell)->Execute("BEGIN IMMEDIATE"), absl::OkStatus());
  ExpectUnavailable(Commit(store.get(), "lost"), "is locked by another process");
  ExpectUnavailable(store->Probe(), "fuser -v");
  EXPECT_EQ(Count(store.get()), 0u) << "reading goes on";
  ASSERT_EQ((*shell)->Execute("ROLLBACK"), absl::OkStatus());
  EXPECT_EQ(Commit(store.get(), "after"), absl::OkStatus());
}

TEST_F(StoreFailuresTest, LetsOneOrchestratorIn) {
  auto store = OpenStore({.file = file_});
  ASSERT_EQ(store->SetAddress("localhost:50051"), absl::OkStatus());
  const absl::Status second = OpenStatus();
  EXPECT_EQ(second.code(), absl::StatusCode::kAlreadyExists) << second;
  EXPECT_NE(second.message().find("process " + std::to_string(getpid()) + ", listening on localhost:50051"),
            std::string::npos)
      << second;
  store.reset();
  EXPECT_EQ(OpenStatus(), absl::OkStatus());
}

// Root may write anything, so root becomes nobody for a while.
class AsAnyone {
 public:
  explicit AsAnyone(const std::filesystem::path& folder) : root_(geteuid() == 0) {
    if (!root_) return;
    EXPECT_EQ(chown(folder.c_str(), 65534, 65534), 0);
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      EXPECT_EQ(chown(entry.path().c_str(), 65534, 65534), 0);
    }
    EXPECT_EQ(seteuid(65534), 0);
  }
  ~AsAnyone() {
    if (root_) {
      EXPECT_EQ(seteuid(0), 0);
    }
  }

 private:
  bool root_;
};

TEST_F(StoreFailuresTest, RefusesAFileThatIsReadOnly) {
  ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
  {
    AsAnyone anyone(folder_.path());
    ASSERT_EQ(chmod(file_.c_str(), 0400), 0);
    ExpectUnavailable(OpenStatus(), "is read-only: give this user write permission");
    ASSERT_EQ(chmod(file_.c_str(), 0000), 0);
    ExpectUnavailable(OpenStatus(), "can't be opened");
    ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
    EXPECT_EQ(OpenStatus(), absl::OkStatus());
  }
  EXPECT_EQ(Count(OpenStore({.file = file_}).get()), 1u);
}

TEST_F(StoreFailuresTest, RefusesAFolderThatIsReadOnly) {
  AsAnyone anyone(folder_.path());
  ASSERT_EQ(chmod(folder_.path().c_str(), 0500), 0);
  ExpectUnavailable(OpenStatus(), "check that this user may write to the folder");
  ASSERT_EQ(chmod(folder_.path().c_str(), 0700), 0);
}

TEST_F(StoreFailuresTest, RefusesAFolderInsteadOfAFile) {
  std::filesystem::create_directory(file_);
  ExpectRefused("is a folder: name a file");
}

TEST_F(StoreFailuresTest, RefusesADeviceAndNoName) {
  EXPECT_EQ(Store::Open({.file = "/dev/null"}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Store::Open({.file = ""}).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Store::Open({.file = folder_.path() / ""}).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(StoreFailuresTest, RefusesAFolderThatCannotBeMade) {
  std::ofstream(folder_.path() / "file") << "x";
  ExpectUnavailable(Store::Open({.file = folder_.path() / "file" / "pawl.db"}).status(), "can't make folder");
}

TEST_F(StoreFailuresTest, RefusesAFileThatIsNoDatabase) {
  std::ofstream(file_) << std::string(10000, 'x');
  ExpectRefused("is not a Pawl database: name another file");
}

TEST_F(StoreFailuresTest, RefusesTheDatabaseOfAnotherProgramAndLeavesItAlone) {
  {
    auto other = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0);
    ASSERT_EQ((*other)->Execute("CREATE TABLE bookmarks (url TEXT)"), absl::OkStatus());
  }
  const auto size = std::filesystem::file_size(file_);
  ExpectRefused("is the SQLite database of another program");
  EXPECT_EQ(std::filesystem::file_size(file_), size);
  auto other = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0);
  EXPECT_EQ((*other)->QueryInt("SELECT count(*) FROM sqlite_schema").value(), 1);
  EXPECT_EQ((*other)->QueryInt("PRAGMA application_id").value(), 0);
}

TEST_F(StoreFailuresTest, RefusesASchemaThatIsNewerAndNamesBothVersions) {
  ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
  {
    auto newer = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0);
    ASSERT_EQ((*newer)->Execute("PRAGMA user_version = 7"), absl::OkStatus());
  }
  ExpectRefused("has schema version 7, this Pawl knows up to 6");
}

TEST_F(StoreFailuresTest, FindsDamage) {
  {
    auto store = OpenStore({.file = file_});
    for (int i = 0; i < 200; ++i) ASSERT_EQ(Commit(store.get(), std::string(3000, 'x')), absl::OkStatus());
  }
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 2; page < 120; page += 7) file.seekp(page * 4096).write(std::string(2000, '\xaa').data(), 2000);
  }
  const absl::Status status = OpenStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find("put the latest backup in its place"), std::string::npos) << status;
}

TEST_F(StoreFailuresTest, FindsThatTheEndIsMissing) {
  {
    auto store = OpenStore({.file = file_});
    for (int i = 0; i < 200; ++i) ASSERT_EQ(Commit(store.get(), std::string(3000, 'x')), absl::OkStatus());
  }
  std::filesystem::resize_file(file_, 40 * 4096);
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kDataLoss) << OpenStatus();
}

TEST_F(StoreFailuresTest, ChecksOnlyWhatWasNotClosed) {
  bool checked = false;
  const StoreOptions options = {.file = file_, .check_begins = [&] { checked = true; }};
  ASSERT_EQ(Commit(OpenStore(options).get(), "before"), absl::OkStatus());
  EXPECT_TRUE(std::exchange(checked, false)) << "nobody closed it before";
  ASSERT_EQ(Commit(OpenStore(options).get(), "again"), absl::OkStatus());
  EXPECT_FALSE(checked) << "the store before closed it";

  auto store = OpenStore(options);
  ASSERT_EQ(Commit(store.get(), "third"), absl::OkStatus());
  const std::filesystem::path crashed = folder_.path() / "crashed.db";  // as a kill would leave it
  for (const char* suffix : {"", "-wal", ".lock"}) {
    std::filesystem::copy_file(file_.native() + suffix, crashed.native() + suffix);
  }
  store.reset();
  StoreOptions other = options;
  other.file = crashed;
  other.check = false;
  EXPECT_EQ(Count(OpenStore(other).get()), 3u);
  EXPECT_FALSE(checked);
  other.check = true;
  EXPECT_EQ(Count(OpenStore(other).get()), 3u);
  EXPECT_TRUE(std::exchange(checked, false)) << "who did not check does not say that it is undamaged";
  EXPECT_EQ(Count(OpenStore(other).get()), 3u);
  EXPECT_FALSE(checked);
}

TEST_F(StoreFailuresTest, ServesReadsWhileItIsCheckedAndWritesAfterwards) {
  ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
  std::filesystem::remove(file_.native() + ".lock");
  std::promise<void> go_on;
  auto store = OpenStore({.file = file_, .check_patience = std::chrono::milliseconds(0), .check_begins = [&] {
                            go_on.get_future().wait();
                          }});
  const int tries = SoakCount(10, 1000);
  int reads = 0, waited = 0;
  for (int i = 0; i < tries; ++i) {
    reads += Count(store.get()) == 1u;
    waited += absl::IsUnavailable(Commit(store.get(), "too early"));
  }
  EXPECT_EQ(reads, tries);
  EXPECT_EQ(waited, tries);
  ExpectUnavailable(Commit(store.get(), "too early"), "is being checked for damage");
  ExpectUnavailable(store->Probe(), "is being checked for damage");
  EXPECT_EQ(store->Check(), absl::OkStatus());
  go_on.set_value();
  absl::Status status;
  do {
    status = store->Probe();
  } while (absl::IsUnavailable(status));
  ASSERT_EQ(status, absl::OkStatus());
  EXPECT_EQ(Commit(store.get(), "after"), absl::OkStatus());
  EXPECT_EQ(Count(store.get()), 2u);
  ReportPromise(17, "while the file was being checked, " + std::to_string(reads) + " of " + std::to_string(tries) +
                        " reads were served and " + std::to_string(waited) + " writes put off");
}

TEST_F(StoreFailuresTest, EndsWhenDamageIsFoundWhileItServes) {
  {
    auto store = OpenStore({.file = file_});
    for (int i = 0; i < 200; ++i) ASSERT_EQ(Commit(store.get(), std::string(3000, 'x')), absl::OkStatus());
  }
  {
    std::fstream file(file_, std::ios::in | std::ios::out | std::ios::binary);
    for (int page = 60; page < 120; page += 7) file.seekp(page * 4096).write(std::string(2000, '\xaa').data(), 2000);
  }
  std::promise<void> go_on;
  auto store = OpenStore({.file = file_, .check_patience = std::chrono::milliseconds(0), .check_begins = [&] {
                            go_on.get_future().wait();
                          }});
  EXPECT_EQ(store->Check(), absl::OkStatus());
  go_on.set_value();
  while (store->Check().ok()) std::this_thread::yield();
  EXPECT_EQ(store->Check().code(), absl::StatusCode::kDataLoss) << store->Check();
  EXPECT_EQ(Commit(store.get(), "lost").code(), absl::StatusCode::kDataLoss);
  store.reset();
  EXPECT_EQ(OpenStatus().code(), absl::StatusCode::kDataLoss) << "it was not closed as undamaged";
}

TEST_F(StoreFailuresTest, AcknowledgesNothingOnceItsFilesAreGoneReplacedOrCut) {
  const std::filesystem::path aside = folder_.path() / "aside";
  const std::string log = file_.native() + "-wal", index = file_.native() + "-shm";
  const std::pair<const char*, std::function<void()>> harms[] = {
      {"was removed or moved", [&] { std::filesystem::rename(file_, aside); }},
      {"was replaced",
       [&] {
         std::filesystem::copy_file(file_, aside);
         std::filesystem::rename(aside, file_);
       }},
      {"was cut", [&] { std::filesystem::resize_file(file_, 4096); }},
      {"-wal was removed or moved", [&] { std::filesystem::rename(log, aside); }},
      {"-shm was cut", [&] { std::filesystem::resize_file(index, 0); }},
  };
  for (const auto& [what, harm] : harms) {
    SCOPED_TRACE(what);
    ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
    auto store = OpenStore({.file = file_});
    ASSERT_EQ(Commit(store.get(), "acknowledged"), absl::OkStatus());
    ASSERT_EQ(store->Check(), absl::OkStatus());
    harm();
    const absl::Status status = Commit(store.get(), "lost");
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(status.message().find(what), std::string::npos) << status;
    EXPECT_EQ(store->Check(), status);
    EXPECT_EQ(store->Probe(), status) << "there is no way back";
    store.reset();
    for (const std::filesystem::path& file : {std::filesystem::path(log), aside}) {
      if (!std::filesystem::exists(file)) continue;
      EXPECT_GT(std::filesystem::file_size(file), 0u) << "what is left is kept";
    }
    EXPECT_TRUE(std::filesystem::exists(log) || std::filesystem::exists(aside));
    for (const char* suffix : {"", "-wal", "-shm", ".lock"}) std::filesystem::remove(file_.native() + suffix);
    std::filesystem::remove(aside);
  }
}

TEST_F(StoreFailuresTest, HasEverythingAgainWhenTheFileIsPutBack) {
  auto store = OpenStore({.file = file_});
  ASSERT_EQ(Commit(store.get(), "acknowledged"), absl::OkStatus());
  std::filesystem::rename(file_, folder_.path() / "aside");
  EXPECT_FALSE(Commit(store.get(), "lost").ok());
  store.reset();
  ExpectRefused("is missing, but");
  std::filesystem::rename(folder_.path() / "aside", file_);
  EXPECT_EQ(Count(OpenStore({.file = file_}).get()), 1u);
}

TEST_F(StoreFailuresTest, SaysThatTheDiskFailedWhileItOpens) {
  FaultyDisk disk;
  ASSERT_EQ(Commit(OpenStore({.file = file_}).get(), "before"), absl::OkStatus());
  disk.FailReads(SQLITE_IOERR_READ);
  ExpectUnavailable(OpenStatus(), "the disk failed under database");
  disk.Heal();
  EXPECT_EQ(Count(OpenStore({.file = file_}).get()), 1u);
}

// VACUUM makes the file shorter, and loses nothing.
TEST_F(StoreFailuresTest, GoesOnAfterAnotherProgramMadeTheDatabaseSmaller) {
  auto store = OpenStore({.file = file_});
  ASSERT_EQ(Commit(store.get(), "before"), absl::OkStatus());
  {
    auto other = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 1000).value();
    ASSERT_EQ(other->Execute("CREATE TABLE large AS SELECT zeroblob(4000000) AS bytes; PRAGMA wal_checkpoint;"),
              absl::OkStatus());
    ASSERT_EQ(store->Check(), absl::OkStatus());
    const auto large = std::filesystem::file_size(file_);
    ASSERT_EQ(other->Execute("DROP TABLE large; VACUUM; PRAGMA wal_checkpoint;"), absl::OkStatus());
    ASSERT_LT(std::filesystem::file_size(file_), large);
  }
  EXPECT_EQ(store->Check(), absl::OkStatus());
  ASSERT_EQ(Commit(store.get(), "after"), absl::OkStatus());
  EXPECT_EQ(Count(store.get()), 2u);
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) - 4096);
  EXPECT_EQ(store->Check().code(), absl::StatusCode::kFailedPrecondition) << "this one loses a page";
}

}  // namespace
}  // namespace pawl
