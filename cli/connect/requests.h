#pragma once

#include <functional>
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

// Starts a campaign. While no orchestrator answers it tries again for 30 s, with the same request id, so that a try
// that did arrive is not doubled.
absl::StatusOr<v1::Campaign> SubmitBundle(Connection& connection, const v1::Bundle& bundle,
                                          const v1::CampaignSpec& spec, Need reconnect,
                                          const std::function<void(const std::string&)>& say);

}  // namespace pawl
