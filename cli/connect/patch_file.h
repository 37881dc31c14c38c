#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// The text of a patch; "-" is standard input. An error where it can't be read, is empty, is no text, or is larger than
// any edit of one kernel's source.
absl::StatusOr<std::string> ReadPatch(const std::string& file);

}  // namespace pawl
