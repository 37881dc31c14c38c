#pragma once

#include <filesystem>
#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// The text of a file of a bundle. The path must be relative and, symbolic links followed, lie inside the folder; the
// file must be UTF-8 and at most 1 MB.
absl::StatusOr<std::string> ReadSourceFile(const std::filesystem::path& folder, const std::string& path);

}  // namespace pawl
