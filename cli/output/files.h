#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace pawl {

// Writes beside the file and renames, so that a reader sees the old one or the new one.
absl::Status WriteTextFile(const std::filesystem::path& file, const std::string& text);

// The content of a file that may be gzip-compressed. An error where it can't be read, is damaged, or has more than
// `max_bytes` unpacked.
absl::StatusOr<std::string> ReadPackedFile(const std::filesystem::path& file, size_t max_bytes);

// The unified diff in a file, or on standard input where the file is "-". An error where it can't be read, is empty, no
// UTF-8 text or larger than 1 MB.
absl::StatusOr<std::string> ReadPatch(const std::string& file);

}  // namespace pawl
