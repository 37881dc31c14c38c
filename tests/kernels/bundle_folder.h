#pragma once

#include <filesystem>
#include <string>

namespace pawl {

// A copy of a golden bundle in a temporary folder, to be spoilt; removed with the object.
class BundleFolder {
 public:
  explicit BundleFolder(const std::string& golden = "scale_rows");
  ~BundleFolder();
  BundleFolder(const BundleFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  void Write(const std::string& file, const std::string& text) const;
  // Replaces the first `from` in kernel.toml, which must be there. Answers the line it begins in.
  int Replace(const std::string& from, const std::string& to) const;

  // scale_rows, or graph_steps and club_steps, which have the keys that scale_rows lacks.
  static std::filesystem::path Golden(const std::string& name = "scale_rows");

 private:
  std::filesystem::path path_;
};

}  // namespace pawl
