#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "fleet/decision.h"

namespace pawl {

// Reads what /metrics and /api/workers answer. FAILED_PRECONDITION: it is no such answer, of another program perhaps.
absl::StatusOr<Demand> ReadDemand(std::string_view metrics, std::string_view workers);
// The names in what /api/workers answers, without workers/.
absl::StatusOr<std::vector<std::string>> ReadWorkerNames(std::string_view workers);

}  // namespace pawl
