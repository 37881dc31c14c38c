#include "db/sqlite.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <limits>
#include <string>

#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

class SqliteTest : public ::testing::Test {
 protected:
  SqliteTest() : folder_("pawl-sqlite-") {
    auto connection = SqliteConnection::Open(folder_.path() / "a.db", SqliteConnection::Mode::kWrite, 0);
    EXPECT_TRUE(connection.ok()) << connection.status();
    connection_ = *std::move(connection);
    EXPECT_EQ(connection_->Execute("CREATE TABLE t (i INTEGER, r REAL, s TEXT, b BLOB) STRICT"), absl::OkStatus());
  }

  int64_t Count() { return connection_->QueryInt("SELECT count(*) FROM t").value(); }

  TemporaryFolder folder_;
  std::unique_ptr<SqliteConnection> connection_;
};

TEST_F(SqliteTest, BindsAndReadsEveryKind) {
  const std::string bytes("\0\xff\0x", 4);
  ASSERT_EQ(connection_->Use("INSERT INTO t VALUES (?, ?, ?, ?)")
                .Bind(std::numeric_limits<int64_t>::min())
                .Bind(0.5)
                .BindText("é")
                .BindBytes(bytes)
                .Run(),
            absl::OkStatus());
  Statement read = connection_->Use("SELECT i, s, b, r = 0.5 FROM t");
  ASSERT_EQ(read.Step().value(), true);
  EXPECT_EQ(read.Int(0), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(read.Bytes(1), "é");
  EXPECT_EQ(read.Bytes(2), bytes);
  EXPECT_EQ(read.Int(3), 1);
  EXPECT_EQ(read.Step().value(), false);
}

TEST_F(SqliteTest, TellsEmptyFromNull) {
  ASSERT_EQ(connection_->Use("INSERT INTO t (s, b) VALUES (?, ?)").BindText({}).BindBytes({}).Run(), absl::OkStatus());
  ASSERT_EQ(connection_->Use("INSERT INTO t (s, b) VALUES (?, ?)").BindNull().BindNull().Run(), absl::OkStatus());
  EXPECT_EQ(connection_->QueryInt("SELECT count(*) FROM t WHERE s = '' AND b = x''").value(), 1);
  EXPECT_EQ(connection_->QueryInt("SELECT count(*) FROM t WHERE s IS NULL AND b IS NULL").value(), 1);
}

TEST_F(SqliteTest, UsesAStatementAgainWithoutWhatWasBoundBefore) {
  for (const int64_t i : {1, 2}) {
    ASSERT_EQ(connection_->Use("INSERT INTO t (i, r) VALUES (?1, ?2)").Bind(i).Run(), absl::OkStatus());
  }
  ASSERT_EQ(connection_->Use("INSERT INTO t (i, r) VALUES (?1, ?2)").Run(), absl::OkStatus());
  EXPECT_EQ(connection_->QueryInt("SELECT sum(i) FROM t").value(), 3);
  EXPECT_EQ(connection_->QueryInt("SELECT count(*) FROM t WHERE i IS NULL").value(), 1);
}

TEST_F(SqliteTest, SaysInTheFirstStepWhatIsWrongWithAStatement) {
  const absl::Status wrong = connection_->Use("SELECT missing FROM t").Bind(int64_t{1}).Run();
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInternal);
  EXPECT_NE(wrong.message().find("no such column: missing"), std::string::npos) << wrong;
  EXPECT_EQ(connection_->Use("INSERT INTO t (i) VALUES (?)").Bind(int64_t{1}).Bind(int64_t{2}).Run().code(),
            absl::StatusCode::kInternal);
  EXPECT_EQ(Count(), 0);
}

TEST_F(SqliteTest, GivesZeroForNoRowAndForNull) {
  EXPECT_EQ(connection_->QueryInt("SELECT i FROM t").value(), 0);
  EXPECT_EQ(connection_->QueryInt("SELECT max(i) FROM t").value(), 0);
}

TEST_F(SqliteTest, RollsBackWhatIsNotCommitted) {
  {
    Transaction transaction(connection_.get());
    ASSERT_EQ(transaction.Begin(), absl::OkStatus());
    ASSERT_EQ(connection_->Execute("INSERT INTO t (i) VALUES (1)"), absl::OkStatus());
  }
  EXPECT_EQ(Count(), 0);
  {
    Transaction transaction(connection_.get());
    ASSERT_EQ(transaction.Begin(), absl::OkStatus());
    ASSERT_EQ(connection_->Execute("INSERT INTO t (i) VALUES (1)"), absl::OkStatus());
    ASSERT_EQ(transaction.Commit(), absl::OkStatus());
  }
  EXPECT_EQ(Count(), 1);
}

TEST_F(SqliteTest, LocksWhenATransactionBegins) {
  auto other = SqliteConnection::Open(folder_.path() / "a.db", SqliteConnection::Mode::kWrite, 0);
  ASSERT_TRUE(other.ok());
  Transaction mine(connection_.get());
  ASSERT_EQ(mine.Begin(), absl::OkStatus());
  Transaction theirs(other->get());
  EXPECT_EQ(theirs.Begin().code(), absl::StatusCode::kUnavailable);
}

TEST_F(SqliteTest, WritesNothingThroughAReadingConnection) {
  auto reader = SqliteConnection::Open(folder_.path() / "a.db", SqliteConnection::Mode::kRead, 0);
  ASSERT_TRUE(reader.ok());
  const absl::Status status = (*reader)->Execute("INSERT INTO t (i) VALUES (1)");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("read-only"), std::string::npos) << status;
}

TEST_F(SqliteTest, ReadsNothingFromAFileThatIsNotThere) {
  auto reader = SqliteConnection::Open(folder_.path() / "none.db", SqliteConnection::Mode::kRead, 0);
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "none.db"));
}

TEST_F(SqliteTest, TakesSqlitesSpecialNamesForFiles) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder_.path());
  auto connection = SqliteConnection::Open(":memory:", SqliteConnection::Mode::kWrite, 0);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ((*connection)->Execute("CREATE TABLE t (i INTEGER)"), absl::OkStatus());
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / ":memory:"));
  std::filesystem::current_path(before);
}

TEST(SqliteErrorTest, SaysWhatHappenedWhereAndWhatToDo) {
  struct Case {
    int code;
    absl::StatusCode status;
    const char* advice;
  };
  for (const Case& expected : {
           Case{SQLITE_BUSY, absl::StatusCode::kUnavailable, "fuser -v /a/b.db"},
           Case{SQLITE_BUSY_SNAPSHOT, absl::StatusCode::kUnavailable, "sqlite3 shell"},
           Case{SQLITE_READONLY_DBMOVED, absl::StatusCode::kUnavailable, "write permission"},
           Case{SQLITE_FULL, absl::StatusCode::kUnavailable, "free some"},
           Case{SQLITE_IOERR_FSYNC, absl::StatusCode::kUnavailable, "dmesg"},
           Case{SQLITE_CANTOPEN_ISDIR, absl::StatusCode::kUnavailable, "its folder exists"},
           Case{SQLITE_CORRUPT_INDEX, absl::StatusCode::kDataLoss, "latest backup"},
           Case{SQLITE_NOTADB, absl::StatusCode::kFailedPrecondition, "name another file"},
           Case{SQLITE_CONSTRAINT_UNIQUE, absl::StatusCode::kAlreadyExists, "already"},
           Case{SQLITE_CONSTRAINT_FOREIGNKEY, absl::StatusCode::kFailedPrecondition, "campaign first"},
           Case{SQLITE_CONSTRAINT_TRIGGER, absl::StatusCode::kFailedPrecondition, "forbids"},
           Case{SQLITE_CONSTRAINT_CHECK, absl::StatusCode::kInvalidArgument, "forbids the value"},
           Case{SQLITE_NOMEM, absl::StatusCode::kResourceExhausted, "too large"},
           Case{SQLITE_MISUSE, absl::StatusCode::kInternal, "failed"},
       }) {
    const absl::Status status = SqliteError(expected.code, "its own words", ENOSPC, "/a/b.db");
    EXPECT_EQ(status.code(), expected.status) << expected.code;
    for (const char* part : {"/a/b.db", "its own words", "No space left on device", expected.advice}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << part << " in " << status;
    }
  }
}

}  // namespace
}  // namespace pawl
