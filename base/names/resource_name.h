// Resource names: campaigns/7, campaigns/7/iterations/12, campaigns/7/trials/13.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace pawl {

struct NameInCampaign {
  int64_t campaign = 0;
  int32_t number = 0;
  bool operator==(const NameInCampaign&) const = default;
};

std::string CampaignName(int64_t campaign);
std::string IterationName(int64_t campaign, int32_t iteration);
std::string TrialName(int64_t campaign, int32_t trial);

// Nothing unless the text is exactly what the functions above write: no sign, no leading zero, nothing behind it.
std::optional<int64_t> ParseCampaignName(std::string_view name);
std::optional<NameInCampaign> ParseIterationName(std::string_view name);
std::optional<NameInCampaign> ParseTrialName(std::string_view name);

// What people type: from "7" or "campaigns/7".
absl::StatusOr<std::string> ReadCampaignName(const std::string& text);

// From "12" or a whole name, which must be of this campaign.
absl::StatusOr<std::string> ReadIterationName(const std::string& campaign, const std::string& text);

// "7" of campaigns/7, "12" of campaigns/7/iterations/12: what the next command wants to be given.
std::string ShortName(const std::string& name);

}  // namespace pawl
