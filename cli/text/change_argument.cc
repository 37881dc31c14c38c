#include "cli/text/change_argument.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace pawl {

v1::Change ReadChange(const std::string& text) {
  v1::Change change;
  const std::pair<std::string, std::string> parts = absl::StrSplit(text, absl::MaxSplits('=', 1));
  int value = 0;
  if (parts.first.empty() || !absl::SimpleAtoi(parts.second, &value)) return change;
  change.set_variable(parts.first);
  change.set_to(value);
  return change;
}

std::string CheckChange(const std::string& text) {
  if (ReadChange(text).has_to()) return "";
  return absl::StrCat("\"", text, "\" is no change: expected VARIABLE=VALUE, such as TILE_M=16");
}

}  // namespace pawl
