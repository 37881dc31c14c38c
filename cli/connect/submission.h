#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "cli/connect/connection.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Starts a campaign. While no orchestrator answers it tries again for 30 s, with the same request id, so that a try
// that did arrive is not doubled.
absl::StatusOr<v1::Campaign> SubmitBundle(Connection& connection, const v1::Bundle& bundle,
                                          const v1::CampaignSpec& spec, Need reconnect,
                                          const std::function<void(const std::string&)>& say);

}  // namespace pawl
