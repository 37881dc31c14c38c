#include "agent/tools/bundles.h"

#include <stdlib.h>

#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pawl {
namespace {

constexpr size_t kMostFiles = 200;
constexpr size_t kMostPath = 200;

// Letters, digits, and - _ . +, in folders of such names: what a bundle has, and nothing that leaves it.
bool IsPlainPath(const std::string& path) {
  if (path.empty() || path.size() > kMostPath) return false;
  for (const absl::string_view part : absl::StrSplit(path, '/')) {
    if (part.empty() || part == "." || part == "..") return false;
    for (const char c : part) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                         c == '_' || c == '.' || c == '+';
      if (!plain) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GivenBundle>> GivenBundle::Write(const std::map<std::string, std::string>& files) {
  if (files.size() > kMostFiles) {
    return absl::InvalidArgumentError(absl::StrCat("files: expected at most ", kMostFiles, " files"));
  }
  for (const auto& [path, text] : files) {
    if (IsPlainPath(path)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "files: \"", path.substr(0, 100),
        "\" is not a path in a bundle: expected names of letters, digits, - _ . and + with / between them"));
  }
  std::error_code error;
  std::string pattern = (std::filesystem::temp_directory_path(error) / "pawl-bundle-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr) {
    return absl::UnavailableError("can't create a folder for the bundle's files in TMPDIR");
  }
  std::unique_ptr<GivenBundle> folder(new GivenBundle(pattern));
  for (const auto& [path, text] : files) {
    const std::filesystem::path file = folder->path() / path;
    std::filesystem::create_directories(file.parent_path(), error);
    std::ofstream out(file, std::ios::binary);
    if (!out.write(text.data(), static_cast<std::streamsize>(text.size())).flush()) {
      return absl::UnavailableError(absl::StrCat("can't write ", path, " of the bundle to TMPDIR"));
    }
  }
  return folder;
}

GivenBundle::~GivenBundle() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

}  // namespace pawl
