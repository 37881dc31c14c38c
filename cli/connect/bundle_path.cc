#include "cli/connect/bundle_path.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/spelling.h"
#include "cli/text/failure.h"

namespace pawl {

namespace fs = std::filesystem;

namespace {

// Upwards of the program, the nearest first.
std::vector<fs::path> ShippedFolders(const fs::path& program) {
  std::vector<fs::path> folders;
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    for (const char* shipped : {"kernels", "share/pawl/kernels"}) folders.push_back(folder / shipped);
  }
  return folders;
}

std::set<std::string> BundlesIn(const std::vector<fs::path>& folders) {
  std::error_code error;
  std::set<std::string> names;
  for (const fs::path& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      if (fs::exists(entry.path() / "kernel.toml", error)) names.insert(entry.path().filename());
    }
  }
  return names;
}

}  // namespace

fs::path BundlePath(const std::string& text) {
  std::error_code error;
  return BundlePath(text, fs::read_symlink("/proc/self/exe", error));
}

fs::path BundlePath(const std::string& text, const fs::path& program) {
  std::error_code error;
  if (text.empty() || text.find('/') != std::string::npos || fs::exists(text, error)) return text;
  for (const fs::path& folder : ShippedFolders(program)) {
    if (fs::exists(folder / text / "kernel.toml", error)) return folder / text;
  }
  return text;
}

std::string BundleMeant(const std::string& text) {
  std::error_code error;
  if (text.empty() || fs::exists(BundlePath(text), error)) return "";
  const fs::path path = fs::path(text).has_filename() ? fs::path(text) : fs::path(text).parent_path();
  std::vector<fs::path> folders = {path.parent_path().empty() ? "." : path.parent_path()};
  if (!path.has_parent_path()) folders = ShippedFolders(fs::read_symlink("/proc/self/exe", error));
  std::set<std::string> names = BundlesIn(folders);
  const bool there = path.has_parent_path() && !names.empty();
  if (names.empty()) names = BundlesIn(ShippedFolders(fs::read_symlink("/proc/self/exe", error)));
  if (names.empty()) return "";
  const std::string meant = Suggestion(path.filename(), {names.begin(), names.end()});
  return absl::StrCat(
      meant.empty() ? "" : meant.substr(2) + " ",
      there ? "Bundles there: " : "Bundles that ship with Pawl, by their names alone: ", absl::StrJoin(names, ", "));
}

absl::StatusOr<v1::Bundle> LoadBundle(const std::string& text) {
  const fs::path folder = BundlePath(text);
  BundleReading reading = ReadBundle(folder);
  if (reading.problems.empty()) return std::move(reading.bundle);
  v1::ErrorDetail detail;
  for (const Problem& problem : reading.problems) detail.add_problems(FormatProblem(problem));
  const std::string meant = BundleMeant(text);
  detail.set_fix(meant.empty() ? "`pawl check` explains what is wrong with a bundle" : meant);
  const size_t count = reading.problems.size();
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat(count, count == 1 ? " problem" : " problems", " in ", folder.string())),
      detail);
}

}  // namespace pawl
