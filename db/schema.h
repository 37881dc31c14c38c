#pragma once

#include "absl/status/status.h"
#include "db/sqlite.h"

namespace pawl {

inline constexpr int kSchemaVersion = 6;  // of db/migrations

// FAILED_PRECONDITION: the file belongs to another program, or to a newer Pawl. An empty file is anybody's.
absl::Status CheckIsPawlDatabase(SqliteConnection* connection);

// DATA_LOSS: quick_check found damage. Reads the whole file.
absl::Status CheckIsUndamaged(SqliteConnection* connection);

// Brings the schema up to kSchemaVersion, each step in a transaction of its own.
absl::Status Migrate(SqliteConnection* connection);

}  // namespace pawl
