#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The kept iterations that lead from the start to this one, first to last.
absl::StatusOr<std::vector<v1::Iteration>> KeptPath(Connection& connection, const std::string& campaign, int number);

// The same, of iterations that are here already.
std::vector<v1::Iteration> KeptPathIn(const std::vector<v1::Iteration>& iterations, int number);

// A line a step: number, change, speedup over the parent, time.
std::string PathText(const std::vector<v1::Iteration>& path);

}  // namespace pawl
