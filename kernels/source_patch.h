#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// The source with a unified diff applied, as `diff -u` and `git diff` write it. Context and removed lines must be there
// exactly; a hunk may have moved by some lines. An error says which hunk does not fit and what was expected there: the
// patch edits another file than `path`, more than one file, makes or removes a file, or is no unified diff.
absl::StatusOr<std::string> ApplyPatch(const std::string& source, const std::string& patch, const std::string& path);

}  // namespace pawl
