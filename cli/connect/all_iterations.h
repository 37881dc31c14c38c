#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Every page of what the request asks for; its page size and token do not matter.
absl::StatusOr<std::vector<v1::Iteration>> AllIterations(Connection& connection, v1::ListIterationsRequest request);

// The kept iterations that lead from the start to this one, first to last.
absl::StatusOr<std::vector<v1::Iteration>> KeptPath(Connection& connection, const std::string& campaign, int number);

}  // namespace pawl
