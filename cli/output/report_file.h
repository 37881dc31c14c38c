#pragma once

#include <filesystem>
#include <optional>

#include "absl/time/time.h"
#include "cli/connect/settings.h"
#include "pawl/v1/campaign.pb.h"

namespace pawl {

// The page that the database's orchestrator writes of a campaign that has ended; waits a little for it. Nothing: it
// writes none, or somewhere else.
std::optional<std::filesystem::path> AwaitReport(const Settings& settings, const v1::Campaign& campaign,
                                                 absl::Duration patience,
                                                 const Environment& environment = FromEnvironment);

}  // namespace pawl
