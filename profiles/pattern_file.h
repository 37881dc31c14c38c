// Files of patterns: what `pawl patterns --export` writes and patterns/ ships.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pawl/v1/pattern.pb.h"

namespace pawl {

inline constexpr int kPatternFileVersion = 1;

// `name` is the file's, for messages. INVALID_ARGUMENT: it is no JSON of a PatternFile, of another version, or an entry
// can't be (CheckPatternFile).
absl::StatusOr<v1::PatternFile> ParsePatternFile(std::string_view json, const std::string& name);

// INVALID_ARGUMENT, with every mistake as "name: patterns[3] (rule grid-too-small): message", one a line: another
// version, no source, a name too long, an unknown resource or direction, figures that can't be, an entry twice.
absl::Status CheckPatternFile(const v1::PatternFile& file, const std::string& name);

// The JSON that ParsePatternFile reads.
std::string PatternFileText(const v1::PatternFile& file);

// Those that were built in, of patterns/*.json.
const std::vector<v1::PatternFile>& ShippedPatterns();

}  // namespace pawl
