#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace pawl {

// Writes beside the file and renames, so that a reader sees the old one or the new one.
absl::Status WriteTextFile(const std::filesystem::path& file, const std::string& text);

}  // namespace pawl
