#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/sqlite.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

// Rows of pattern_counts and pattern_files. A lesson is a pattern of one bundle whose median is the gain of each of its
// iterations: rows that differ in the gain are one pattern to those who read them.
absl::Status WriteLesson(SqliteConnection* writer, const v1::Pattern& lesson);
absl::StatusOr<std::vector<v1::Pattern>> ReadLessons(SqliteConnection* reader);

absl::Status WritePatternFile(SqliteConnection* writer, const v1::PatternFile& file);

// One that is there already is left as it is.
absl::Status WritePatternExport(SqliteConnection* writer, const std::string& hash);
absl::StatusOr<std::vector<std::string>> ReadPatternExports(SqliteConnection* reader);

}  // namespace pawl
