#include "db/schema.h"

#include <gtest/gtest.h>

#include <string>

#include "db/embedded.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

class SchemaTest : public ::testing::Test {
 protected:
  SchemaTest() : folder_("pawl-schema-"), file_(folder_.path() / "pawl.db") {
    {
      auto store = OpenStore({.file = file_});
      for (int i = 0; i < 3; ++i) {
        Writes writes = MakeWrites(MakeJudged(1, MakeIteration(1, i, v1::KEPT)));
        EXPECT_EQ(store->Commit(&writes), absl::OkStatus());
      }
    }
    // What somebody with a sqlite3 shell has.
    connection_ = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0).value();
  }

  void ExpectForbidden(const std::string& sql, const std::string& part) {
    const absl::Status status = connection_->Execute(sql);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << sql << ": " << status;
    EXPECT_NE(status.message().find(part), std::string::npos) << status;
    EXPECT_EQ(connection_->QueryInt("SELECT count(*) FROM events WHERE sequence IN (1, 2, 3)").value(), 3);
    EXPECT_EQ(connection_->QueryInt("SELECT count(*) FROM events").value(), 3);
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::unique_ptr<SqliteConnection> connection_;
};

TEST_F(SchemaTest, LetsNobodyChangeOrDeleteAnEvent) {
  ExpectForbidden("UPDATE events SET time_us = 0 WHERE sequence = 2", "append-only");
  ExpectForbidden("DELETE FROM events WHERE sequence = 3", "append-only");
  ExpectForbidden("DELETE FROM events", "append-only");
}

TEST_F(SchemaTest, LetsNobodyReplaceOrSkipAnEvent) {
  ExpectForbidden("INSERT OR REPLACE INTO events VALUES (2, 1, 0, 4, x'')", "rises by one");
  ExpectForbidden("INSERT INTO events VALUES (5, 1, 0, 4, x'')", "rises by one");
  ExpectForbidden("INSERT INTO events VALUES (0, 1, 0, 4, x'')", "rises by one");
}

TEST_F(SchemaTest, HasStrictTablesOnly) {
  EXPECT_EQ(connection_
                ->QueryInt("SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND NOT strict AND"
                           " name NOT LIKE 'sqlite_%'")
                .value(),
            0);
  EXPECT_EQ(connection_->Execute("INSERT INTO workers VALUES ('a', 'b', 'text')").code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SchemaTest, WritesDownWhoseItIsAndHowOld) {
  EXPECT_EQ(connection_->QueryInt("PRAGMA application_id").value(), 0x5061776c);
  EXPECT_EQ(connection_->QueryInt("PRAGMA user_version").value(), kSchemaVersion);
  EXPECT_EQ(CheckIsPawlDatabase(connection_.get()), absl::OkStatus());
  EXPECT_EQ(CheckIsUndamaged(connection_.get()), absl::OkStatus());
}

TEST_F(SchemaTest, MigratesOnce) {
  const int64_t before = connection_->QueryInt("PRAGMA schema_version").value();
  EXPECT_EQ(Migrate(connection_.get()), absl::OkStatus());
  EXPECT_EQ(connection_->QueryInt("PRAGMA schema_version").value(), before);
}

// What a database of version 1 has, and nothing more.
constexpr char kSchema[] = "SELECT sum(length(sql)) FROM sqlite_schema";

TEST_F(SchemaTest, BringsADatabaseOfVersion1UpToDateWithAllThatIsInIt) {
  auto first = SqliteConnection::Open(folder_.path() / "first.db", SqliteConnection::Mode::kWrite, 0).value();
  ASSERT_EQ(first->Execute(std::string(embedded::kMigrations0001InitialSql)), absl::OkStatus());
  std::string trigger;
  {
    Statement select = first->Use("SELECT sql FROM sqlite_schema WHERE name = 'events_have_no_gaps'");
    ASSERT_TRUE(select.Step().value());
    trigger = select.Bytes(0);
  }
  ASSERT_EQ(connection_->Execute("DROP TABLE pattern_counts; DROP TABLE pattern_files; DROP TABLE pattern_exports;"
                                 "DROP TRIGGER events_have_no_gaps; DROP TABLE archived; DROP TABLE spending;"
                                 "PRAGMA user_version = 1;" +
                                 trigger),
            absl::OkStatus());
  ASSERT_EQ(connection_->QueryInt(kSchema).value(), first->QueryInt(kSchema).value());
  connection_.reset();

  auto store = OpenStore({.file = file_});
  EXPECT_EQ(store->ListIterations({.campaign = 1})->size(), 3u);
  EXPECT_EQ(store->Events(1, 0, 10)->size(), 3u);
  EXPECT_TRUE(store->Lessons()->empty());
  EXPECT_TRUE(store->PatternFiles()->empty());
  EXPECT_TRUE(store->SpendingUncounted().value());
  Writes writes = MakeWrites(MakeJudged(1, MakeIteration(1, 3, v1::KEPT)));
  writes.lessons.emplace_back().set_tried(1);
  writes.pattern_files.emplace_back().set_source("ann's");
  writes.pattern_exports = {"one", "one"};
  ASSERT_EQ(store->Commit(&writes), absl::OkStatus());
  EXPECT_EQ(store->PatternExports().value(), std::vector<std::string>{"one"});
  EXPECT_EQ(store->Lessons()->size(), 1u);
  store.reset();
  connection_ = SqliteConnection::Open(file_, SqliteConnection::Mode::kWrite, 0).value();
  EXPECT_EQ(connection_->QueryInt("PRAGMA user_version").value(), kSchemaVersion);
}

TEST_F(SchemaTest, LeavesNothingBehindWhenAMigrationFails) {
  auto fresh = SqliteConnection::Open(folder_.path() / "fresh.db", SqliteConnection::Mode::kWrite, 0).value();
  // In the way of the last table.
  ASSERT_EQ(fresh->Execute("CREATE TABLE meta (i INTEGER)"), absl::OkStatus());
  EXPECT_FALSE(Migrate(fresh.get()).ok());
  EXPECT_EQ(fresh->QueryInt("PRAGMA user_version").value(), 0);
  EXPECT_EQ(fresh->QueryInt("SELECT count(*) FROM sqlite_schema").value(), 1);
  ASSERT_EQ(fresh->Execute("DROP TABLE meta"), absl::OkStatus());
  EXPECT_EQ(Migrate(fresh.get()), absl::OkStatus());
}

}  // namespace
}  // namespace pawl
