#include "cli/bundle_path.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/failure.h"

namespace pawl {

namespace fs = std::filesystem;

fs::path BundlePath(const std::string& text) {
  std::error_code error;
  return BundlePath(text, fs::read_symlink("/proc/self/exe", error));
}

fs::path BundlePath(const std::string& text, const fs::path& program) {
  std::error_code error;
  if (text.empty() || text.find('/') != std::string::npos || fs::exists(text, error)) return text;
  for (fs::path folder = program.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    for (const char* shipped : {"kernels", "share/pawl/kernels"}) {
      const fs::path bundle = folder / shipped / text;
      if (fs::exists(bundle / "kernel.toml", error)) return bundle;
    }
  }
  return text;
}

absl::StatusOr<v1::Bundle> LoadBundle(const std::string& text) {
  const fs::path folder = BundlePath(text);
  BundleReading reading = ReadBundle(folder);
  if (reading.problems.empty()) return std::move(reading.bundle);
  v1::ErrorDetail detail;
  for (const Problem& problem : reading.problems) detail.add_problems(FormatProblem(problem));
  detail.set_fix("`pawl check` says more about a bundle");
  const size_t count = reading.problems.size();
  return WithDetail(
      absl::InvalidArgumentError(absl::StrCat(count, count == 1 ? " problem" : " problems", " in ", folder.string())),
      detail);
}

}  // namespace pawl
