#include "db/resource_name.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr std::string_view kCampaigns = "campaigns/";
constexpr std::string_view kIterations = "/iterations/";
constexpr std::string_view kTrials = "/trials/";

bool Take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename Number>
bool Take(std::string_view& text, Number& number) {
  if (text.empty() || text[0] == '-' || (text[0] == '0' && text.size() > 1 && text[1] >= '0' && text[1] <= '9')) {
    return false;
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(end - text.data());
  return true;
}

std::optional<NameInCampaign> Parse(std::string_view name, std::string_view collection) {
  NameInCampaign parsed;
  if (Take(name, kCampaigns) && Take(name, parsed.campaign) && Take(name, collection) && Take(name, parsed.number) &&
      name.empty()) {
    return parsed;
  }
  return std::nullopt;
}

}  // namespace

std::string CampaignName(int64_t campaign) { return absl::StrCat("campaigns/", campaign); }

std::string IterationName(int64_t campaign, int32_t iteration) {
  return absl::StrCat("campaigns/", campaign, "/iterations/", iteration);
}

std::string TrialName(int64_t campaign, int32_t trial) {
  return absl::StrCat("campaigns/", campaign, "/trials/", trial);
}

std::optional<int64_t> ParseCampaignName(std::string_view name) {
  int64_t campaign = 0;
  if (Take(name, kCampaigns) && Take(name, campaign) && name.empty()) return campaign;
  return std::nullopt;
}

std::optional<NameInCampaign> ParseIterationName(std::string_view name) { return Parse(name, kIterations); }

std::optional<NameInCampaign> ParseTrialName(std::string_view name) { return Parse(name, kTrials); }

}  // namespace pawl
