#include "profiles/profile_set.h"

#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "profiles/embedded.h"

namespace pawl {
namespace {

// Nothing: there is no such file.
absl::StatusOr<std::optional<std::string>> Read(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::optional<std::string>();
  std::ifstream stream(file);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream) return absl::PermissionDeniedError(absl::StrCat(file.string(), " can't be read"));
  return std::optional<std::string>(text.str());
}

}  // namespace

absl::StatusOr<ProfileSet> ProfileSet::Load(const std::filesystem::path& folder) {
  ProfileSet set = Default();
  const auto read = [&](const char* name) { return Read(folder / name); };
  absl::StatusOr<std::optional<std::string>> metrics = read("metrics.toml"), tree = read("decision_tree.toml"),
                                             gates = read("gates.toml");
  for (const auto* file : {&metrics, &tree, &gates}) {
    if (!file->ok()) return file->status();
  }
  if (!*metrics && !*tree && !*gates) {
    return absl::NotFoundError(absl::StrCat(folder.string(), " has no metrics.toml, decision_tree.toml or gates.toml"));
  }
  if (*metrics) {
    absl::StatusOr<Metrics> parsed = Metrics::Parse(**metrics, (folder / "metrics.toml").string());
    if (!parsed.ok()) return parsed.status();
    set.metrics = *std::move(parsed);
  }
  // The built-in rules too must make sense with the folder's metrics.
  if (*metrics || *tree) {
    absl::StatusOr<DecisionTree> parsed = DecisionTree::Parse(
        *tree ? std::string_view(**tree) : embedded::kDecisionTreeToml,
        *tree ? (folder / "decision_tree.toml").string() : "decision_tree.toml (built in)", set.metrics);
    if (!parsed.ok()) return parsed.status();
    set.tree = *std::move(parsed);
  }
  if (*gates) {
    absl::StatusOr<Gates> parsed = Gates::Parse(**gates, (folder / "gates.toml").string());
    if (!parsed.ok()) return parsed.status();
    set.gates = *std::move(parsed);
  }
  return set;
}

const ProfileSet& ProfileSet::Default() {
  static const ProfileSet set = {Metrics::Default(), DecisionTree::Default(), Gates::Default()};
  return set;
}

}  // namespace pawl
