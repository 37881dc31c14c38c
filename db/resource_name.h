#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pawl {

// What the protos call things: campaigns/7, campaigns/7/iterations/12, campaigns/7/trials/13.

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

}  // namespace pawl
