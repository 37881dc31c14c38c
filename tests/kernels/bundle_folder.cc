#include "tests/kernels/bundle_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace pawl {

namespace fs = std::filesystem;

fs::path BundleFolder::Golden(const std::string& name) {
  const char* source = std::getenv("PAWL_SOURCE_DIR");
  return fs::path(source == nullptr ? "." : source) / "tests/kernels/golden" / name;
}

BundleFolder::BundleFolder(const std::string& golden) {
  std::string name = (fs::temp_directory_path() / "pawl_bundle_XXXXXX").string();
  path_ = mkdtemp(name.data());
  fs::copy(Golden(golden), path_, fs::copy_options::recursive);
}

BundleFolder::~BundleFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void BundleFolder::Write(const std::string& file, const std::string& text) const {
  fs::create_directories((path_ / file).parent_path());
  std::ofstream(path_ / file, std::ios::binary) << text;
}

int BundleFolder::Replace(const std::string& from, const std::string& to) const {
  std::stringstream buffer;
  buffer << std::ifstream(path_ / "kernel.toml").rdbuf();
  std::string text = buffer.str();
  const size_t at = text.find(from);
  if (at == std::string::npos) {
    ADD_FAILURE() << "the golden bundle has no " << from;
    return 0;
  }
  const int line = 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
  Write("kernel.toml", text.replace(at, from.size(), to));
  return line;
}

}  // namespace pawl
