#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

// Which of the metrics this ncu and GPU lack, from what `ncu --query-metrics` printed. It lists metrics without their
// suffix; what has none (launch__grid_size) comes from the launch or the driver and is never listed. An error when the
// output names no metric at all.
absl::StatusOr<std::vector<std::string>> MissingNcuMetrics(const std::vector<std::string>& wanted,
                                                           std::string_view query_output);

}  // namespace pawl
