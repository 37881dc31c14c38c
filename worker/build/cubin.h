#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// The kernels of a cubin, sorted: function symbols that carry CUDA's entry flag, so device functions are left out.
// InvalidArgument: it is no cubin, or a broken one.
absl::StatusOr<std::vector<std::string>> EntryNames(std::string_view cubin);

}  // namespace pawl
