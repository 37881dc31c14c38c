// No query of the store sorts or reads a whole table: what is fast with ten rows is fast with a million.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "db/sqlite.h"
#include "db/store.h"
#include "tests/db/made_writes.h"
#include "worker/process/temporary_folder.h"

namespace pawl {
namespace {

// Every statement that any connection runs, from when it is made.
std::set<std::string> seen;

int See(unsigned, void*, void* statement, void*) {
  seen.insert(sqlite3_sql(static_cast<sqlite3_stmt*>(statement)));
  return 0;
}

int Trace(sqlite3* db, char**, const void*) { return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, See, nullptr); }

std::string PlanOf(SqliteConnection* connection, const std::string& sql) {
  std::string plan;
  Statement explain = connection->Use("EXPLAIN QUERY PLAN " + sql);
  while (true) {
    const absl::StatusOr<bool> row = explain.Step();
    EXPECT_TRUE(row.ok()) << sql << ": " << row.status();
    if (!row.ok() || !*row) return plan;
    plan += std::string(explain.Bytes(3)) + "\n";
  }
}

bool IsWhole(std::string plan) {
  constexpr std::string_view kNoTable = "SCAN CONSTANT ROW";  // a SELECT without FROM
  for (size_t at; (at = plan.find(kNoTable)) != std::string::npos;) plan.erase(at, kNoTable.size());
  return plan.find("SCAN") != std::string::npos || plan.find("TEMP B-TREE") != std::string::npos;
}

class QueryPlanTest : public ::testing::Test {
 protected:
  QueryPlanTest() : folder_("pawl-plan-"), file_(folder_.path() / "pawl.db") {
    sqlite3_auto_extension(reinterpret_cast<void (*)()>(Trace));
    store_ = OpenStore({.file = file_, .check = false});
    sqlite3_reset_auto_extension();
    seen.clear();
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
  std::unique_ptr<Store> store_;
};

TEST_F(QueryPlanTest, UsesAnIndexForEveryReadAndWrite) {
  Writes writes = MakeWrites(MakeJudged(1, MakeIteration(1, 0, v1::KEPT)));
  v1::Event submitted = MakeProposal(1, "");
  submitted.mutable_submitted()->set_request_id("request");
  writes.events.push_back(submitted);
  writes.blobs = {{v1::Blob::LOG, "ab", "text"}};
  writes.workers.emplace_back().worker.set_name("workers/a");
  writes.lessons.emplace_back().set_tried(1);
  writes.pattern_files.emplace_back().set_source("ann's");
  ASSERT_EQ(store_->Commit(&writes), absl::OkStatus());
  ASSERT_TRUE(store_->LastCampaign().ok());
  ASSERT_TRUE(store_->UnfinishedCampaigns().ok());
  ASSERT_TRUE(store_->GetCampaign(1).ok());
  ASSERT_TRUE(store_->FindRequest("request").ok());
  ASSERT_TRUE(store_->ListCampaigns(0, 10).ok());
  ASSERT_TRUE(store_->Events(1, 0, 10).ok());
  ASSERT_TRUE(store_->GetIteration(1, 0).ok());
  ASSERT_TRUE(store_->GetBlob("ab").ok());
  ASSERT_TRUE(store_->HasBlob("ab").ok());
  for (const int verdict : {0, 1}) {
    for (const char* variable : {"", "A"}) {
      for (const char* finding : {"", "rule"}) {
        for (const int order : {1, 2, 3}) {
          ASSERT_TRUE(store_
                          ->ListIterations({.campaign = 1,
                                            .verdict = static_cast<v1::Verdict>(verdict),
                                            .variable = variable,
                                            .finding = finding,
                                            .order = static_cast<v1::IterationOrder>(order)})
                          .ok());
        }
      }
    }
  }

  auto connection = SqliteConnection::Open(file_, SqliteConnection::Mode::kRead, 0);
  ASSERT_TRUE(connection.ok());
  int queries = 0;
  for (const std::string& sql : seen) {
    if (sql.starts_with("BEGIN") || sql.starts_with("COMMIT") || sql.starts_with("--")) continue;
    std::string plan = PlanOf(connection->get(), sql);
    // All of an index that holds only what is asked for.
    const size_t unfinished = plan.find("SCAN campaigns USING INDEX campaigns_unfinished");
    if (unfinished != std::string::npos) plan.erase(unfinished, 4);
    EXPECT_FALSE(IsWhole(plan)) << sql << "\n" << plan;
    ++queries;
  }
  EXPECT_GE(queries, 24 + 19) << "not every statement was seen";
}

TEST_F(QueryPlanTest, WouldFindAQueryWithoutAnIndex) {
  auto connection = SqliteConnection::Open(file_, SqliteConnection::Mode::kRead, 0);
  ASSERT_TRUE(connection.ok());
  EXPECT_TRUE(IsWhole(PlanOf(connection->get(), "SELECT summary FROM iterations WHERE time_us > 1")));
  EXPECT_TRUE(
      IsWhole(PlanOf(connection->get(),
                     "SELECT summary FROM iterations WHERE campaign = 1 AND verdict = 1 ORDER BY time_us LIMIT 5")));
}

}  // namespace
}  // namespace pawl
