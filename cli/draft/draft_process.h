// A draft made in a process of its own: libclang reads whatever a user has, and may crash or never end.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace pawl {

struct DraftRequest {
  std::filesystem::path source;
  std::string entry;                // empty: the only kernel
  std::filesystem::path reference;  // a Python file; empty: none
  absl::Duration limit = absl::Seconds(20);
};

struct DraftedBundle {
  std::string name;
  std::map<std::string, std::string> files;  // path inside of the bundle's folder, to text
  std::vector<std::string> notes;            // for the user: what was taken from where
  int todos = 0;
};

// An error is one line for the user: it names the file and what to do.
absl::StatusOr<DraftedBundle> DraftBundle(const DraftRequest& request);

}  // namespace pawl
