#pragma once

#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "agent/campaigns/campaigns.h"
#include "pawl/v1/campaign_service.pb.h"

namespace pawl {

// Writes a file below the folder, whatever its path says. InvalidArgument: the path leads out of it.
absl::Status WriteBelow(const std::filesystem::path& folder, const std::string& path, const std::string& text);

// Writes what an edit of the best variant may change: its source, the other files, and its part of kernel.toml. Of a
// contract alone, kernel.toml.
absl::Status WriteCheckout(Campaigns& campaigns, const v1::Campaign& campaign, const std::filesystem::path& folder);

// Writes what ContractToStartFrom has; of a bundle with an implementation nothing.
absl::Status WriteContract(const v1::Bundle& bundle, const std::filesystem::path& folder);

}  // namespace pawl
