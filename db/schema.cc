#include "db/schema.h"

#include <sqlite3.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "db/embedded.h"
#include "db/sqlite.h"

namespace pawl {
namespace {

constexpr int64_t kApplicationId = 0x5061776c;  // "Pawl"

struct Migration {
  int version;
  std::string_view sql;
};

absl::Status Apply(SqliteConnection* connection, const Migration& migration) {
  Transaction transaction(connection);
  if (absl::Status status = transaction.Begin(); !status.ok()) return status;
  absl::Status status =
      connection->Execute(absl::StrCat(std::string(migration.sql), "PRAGMA application_id = ", kApplicationId,
                                       ";PRAGMA user_version = ", migration.version));
  if (!status.ok()) return status;
  if (migration.version == 1) {
    char secret[32];
    if (getentropy(secret, sizeof secret) != 0) return absl::InternalError("the system has no random bytes");
    status =
        connection->Use("INSERT INTO meta (key, value) VALUES ('secret', ?)").BindBytes({secret, sizeof secret}).Run();
    if (!status.ok()) return status;
  }
  return transaction.Commit();
}

}  // namespace

absl::Status CheckIsPawlDatabase(SqliteConnection* connection) {
  const absl::StatusOr<int64_t> application = connection->QueryInt("PRAGMA application_id");
  if (!application.ok()) return application.status();
  const absl::StatusOr<int64_t> version = connection->QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  const absl::StatusOr<int64_t> objects = connection->QueryInt("SELECT count(*) FROM sqlite_schema");
  if (!objects.ok()) return objects.status();
  if (*application == 0 && *version == 0 && *objects == 0) return absl::OkStatus();
  if (*application != kApplicationId) {
    return absl::FailedPreconditionError(
        absl::StrCat(connection->file(), " is the SQLite database of another program: name another file"));
  }
  if (*version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat("database ", connection->file(), " has schema version ", *version,
                                                      ", this Pawl knows up to ", kSchemaVersion,
                                                      ": use the newer Pawl that wrote it, or a backup from before"));
  }
  return absl::OkStatus();
}

absl::Status CheckIsUndamaged(SqliteConnection* connection) {
  Statement check = connection->Use("PRAGMA quick_check(3)");
  std::string damage;
  while (true) {
    const absl::StatusOr<bool> row = check.Step();
    if (!row.ok()) return row.status();
    if (!*row) break;
    const std::string line(check.Bytes(0));
    if (line != "ok") absl::StrAppend(&damage, damage.empty() ? "" : "; ", line);
  }
  if (damage.empty()) return absl::OkStatus();
  return SqliteError(SQLITE_CORRUPT, damage, 0, connection->file());
}

absl::Status Migrate(SqliteConnection* connection) {
  const Migration migrations[] = {
      {1, embedded::kMigrations0001InitialSql},        {2, embedded::kMigrations0002PatternsSql},
      {3, embedded::kMigrations0003PatternExportsSql}, {4, embedded::kMigrations0004OutdatedRowsSql},
      {5, embedded::kMigrations0005ArchivedSql},       {6, embedded::kMigrations0006SpendingSql}};
  const absl::StatusOr<int64_t> version = connection->QueryInt("PRAGMA user_version");
  if (!version.ok()) return version.status();
  for (const Migration& migration : migrations) {
    if (migration.version <= *version) continue;
    if (absl::Status status = Apply(connection, migration); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace pawl
