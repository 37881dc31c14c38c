// The data files that people edit, together.
#pragma once

#include <filesystem>

#include "absl/status/statusor.h"
#include "profiles/diagnosis.h"
#include "profiles/gates.h"
#include "profiles/metrics.h"

namespace pawl {

struct ProfileSet {
  Metrics metrics;
  DecisionTree tree;
  Gates gates;

  // Each of metrics.toml, decision_tree.toml and gates.toml in the folder replaces the one that was built in.
  // NOT_FOUND: it has none of them. INVALID_ARGUMENT: every mistake, as "file:line: message", one a line.
  static absl::StatusOr<ProfileSet> Load(const std::filesystem::path& folder);
  // Those that were built in.
  static const ProfileSet& Default();
};

}  // namespace pawl
