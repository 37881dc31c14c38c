#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// Finds one of Pawl's own programs: in PAWL_BIN_DIR, beside the running program, or in ../bin of it.
absl::StatusOr<std::string> FindPawlProgram(const std::string& name);

}  // namespace pawl
