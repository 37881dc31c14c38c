#include "db/identity.h"

#include <sqlite3.h>

#include <cctype>
#include <memory>
#include <system_error>

#include "absl/strings/str_format.h"

namespace pawl {

absl::StatusOr<std::string> MakeIdentity(SqliteConnection* connection) {
  absl::Status status = connection->Execute(
      "INSERT INTO meta VALUES ('identity', CAST(lower(hex(randomblob(16))) AS BLOB))"
      " ON CONFLICT (key) DO UPDATE SET value = excluded.value");
  if (!status.ok()) return status;
  return IdentityOf(connection);
}

absl::StatusOr<std::string> IdentityOf(SqliteConnection* connection) {
  Statement select = connection->Use("SELECT value FROM meta WHERE key = 'identity'");
  const absl::StatusOr<bool> row = select.Step();
  if (!row.ok()) return row.status();
  return *row ? std::string(select.Bytes(0)) : "";
}

std::string IdentityInFile(const std::filesystem::path& database) {
  // `immutable`: no -wal is opened, no lock taken, nothing written.
  std::string uri = "file:";
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(database, error);
  for (const unsigned char c : absolute.native()) {
    absl::StrAppendFormat(&uri, isalnum(c) || c == '/' ? "%c" : "%%%02X", c);
  }
  uri += "?immutable=1";
  sqlite3* db = nullptr;
  const int opened = sqlite3_open_v2(uri.c_str(), &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, /*zVfs=*/nullptr);
  const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closing(db, sqlite3_close);
  sqlite3_stmt* select = nullptr;
  if (opened != SQLITE_OK ||
      sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'identity'", -1, &select, nullptr) != SQLITE_OK) {
    return "";
  }
  std::string identity;
  if (sqlite3_step(select) == SQLITE_ROW) {
    const void* bytes = sqlite3_column_blob(select, 0);
    identity.assign(static_cast<const char*>(bytes), sqlite3_column_bytes(select, 0));
  }
  sqlite3_finalize(select);
  return identity;
}

}  // namespace pawl
