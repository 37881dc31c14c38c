#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Every page of what the request asks for; its page size and token do not matter.
absl::StatusOr<std::vector<v1::Iteration>> AllIterations(Connection& connection, v1::ListIterationsRequest request);

}  // namespace pawl
