#include "cli/text/resource_name.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace pawl {
namespace {

bool IsNumber(absl::string_view text, int64_t low) {
  int64_t number = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  return absl::SimpleAtoi(text, &number) && number >= low && absl::StrCat(number) == text;
}

}  // namespace

absl::StatusOr<std::string> CampaignName(const std::string& text) {
  const absl::string_view number = absl::StripPrefix(text, "campaigns/");
  if (!IsNumber(number, 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no campaign: expected 7 or campaigns/7 (pawl campaigns lists them)"));
  }
  return absl::StrCat("campaigns/", number);
}

absl::StatusOr<std::string> IterationName(const std::string& campaign, const std::string& text) {
  const std::string prefix = absl::StrCat(campaign, "/iterations/");
  const absl::string_view number = absl::StripPrefix(text, prefix);
  if (!IsNumber(number, 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is no iteration of ", campaign, ": expected 12 or ", prefix, "12"));
  }
  return absl::StrCat(prefix, number);
}

std::string ShortName(const std::string& name) { return name.substr(name.rfind('/') + 1); }

}  // namespace pawl
