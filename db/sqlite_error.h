#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace pawl {

// What a failure of SQLite means and what to do about it, in one place. `code` is an extended result code, `detail`
// SQLite's own words, `system_error` the errno below it (0: none).
//
// UNAVAILABLE: locked, read-only, full, I/O, cannot be opened. DATA_LOSS: damaged. FAILED_PRECONDITION: not a database,
// or a row is missing that another names, or a trigger forbids it. ALREADY_EXISTS: a second row of that key.
// INVALID_ARGUMENT: a value that the schema forbids. RESOURCE_EXHAUSTED: memory. INTERNAL: anything else.
absl::Status SqliteError(int code, std::string_view detail, int system_error, std::string_view file);

}  // namespace pawl
