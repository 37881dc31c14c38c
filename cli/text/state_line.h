#pragma once

#include "absl/status/statusor.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// Prints the state that a campaign is in after a user changed it. Answers the exit code.
absl::StatusOr<int> PrintState(const absl::StatusOr<v1::Campaign>& campaign, bool json);

}  // namespace pawl
