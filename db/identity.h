#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite.h"

namespace pawl {

// Every copy of a database that Pawl makes has an identity of its own, a random row of the table meta. So a backup that
// was put in a database's place is told from it also where the file, its name and its inode are the same (cp).

// Gives the database a new one and returns it; in the transaction that is open.
absl::StatusOr<std::string> MakeIdentity(SqliteConnection* connection);
// As the connection sees it, with what is in the -wal. Empty: it has none.
absl::StatusOr<std::string> IdentityOf(SqliteConnection* connection);
// As the file alone has it, whatever its -wal says. Empty: it has none, or can't be read without its -wal.
std::string IdentityInFile(const std::filesystem::path& database);

}  // namespace pawl
