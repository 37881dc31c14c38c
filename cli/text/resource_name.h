// `campaigns/7` and `campaigns/7/iterations/12`, as people type them.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// From "7" or "campaigns/7".
absl::StatusOr<std::string> CampaignName(const std::string& text);

// From "12" or a whole name, which must be of this campaign.
absl::StatusOr<std::string> IterationName(const std::string& campaign, const std::string& text);

// "7" of campaigns/7, "12" of campaigns/7/iterations/12: what the next command wants to be given.
std::string ShortName(const std::string& name);

}  // namespace pawl
