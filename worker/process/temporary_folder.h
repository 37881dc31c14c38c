#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace pawl {

// Makes a private folder below TMPDIR and removes it with everything in it. An empty path: it could not be made.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& prefix) {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / (prefix + "XXXXXX")).string();
    if (!error && mkdtemp(pattern.data()) != nullptr) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace pawl
