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
    if (path_.empty()) return;
    // A process that was killed may have left folders that not even their owner may write to.
    std::error_code error;
    const auto all = std::filesystem::recursive_directory_iterator(path_, error);
    for (auto entry = begin(all); !error && entry != end(all); entry.increment(error)) {
      if (!entry->is_directory(error) || entry->is_symlink(error)) continue;
      std::filesystem::permissions(entry->path(), std::filesystem::perms::owner_all, std::filesystem::perm_options::add,
                                   error);
    }
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace pawl
