#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// The kernels of a cubin, sorted: function symbols that carry CUDA's entry flag, so device functions are left out.
// InvalidArgument: it is no cubin, or a broken one.
absl::StatusOr<std::vector<std::string>> EntryNames(std::string_view cubin);

// The functions of the driver that it calls, sorted: malloc, vprintf, ... InvalidArgument: as above.
absl::StatusOr<std::vector<std::string>> DriverFunctions(std::string_view cubin);

// The bytes of each parameter of each kernel, in order, from the cubin's .nv.info sections. A kernel whose layout is
// written in a way that is not known here is left out. InvalidArgument: as above.
absl::StatusOr<std::map<std::string, std::vector<int>>> EntryParameters(std::string_view cubin);

}  // namespace pawl
