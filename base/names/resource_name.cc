#include "base/names/resource_name.h"

#include <charconv>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

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

namespace {

bool IsNumber(absl::string_view text, int64_t low) {
  int64_t number = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  return absl::SimpleAtoi(text, &number) && number >= low && absl::StrCat(number) == text;
}

}  // namespace

absl::StatusOr<std::string> ReadCampaignName(const std::string& text) {
  const absl::string_view number = absl::StripPrefix(text, "campaigns/");
  if (!IsNumber(number, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a campaign: expected 7 or campaigns/7 (pawl campaigns lists them)"));
  }
  return absl::StrCat("campaigns/", number);
}

absl::StatusOr<std::string> ReadIterationName(const std::string& campaign, const std::string& text) {
  const std::string prefix = absl::StrCat(campaign, "/iterations/");
  const absl::string_view number = absl::StripPrefix(text, prefix);
  if (!IsNumber(number, 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not an iteration of ", campaign, ": expected 12 or ", prefix, "12"));
  }
  return absl::StrCat(prefix, number);
}

std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace pawl
