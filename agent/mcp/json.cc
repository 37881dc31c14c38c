#include "agent/mcp/json.h"

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr int kMostNesting = 64;
constexpr int kMostMembers = 4'000;

}  // namespace

const Json* JsonAt(const Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

std::string TextAt(const Json& value, const char* key) {
  const Json* found = JsonAt(value, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::string JsonText(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string JsonExcess(std::string_view text) {
  int depth = 0, members = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostNesting) return absl::StrCat("is nested deeper than ", kMostNesting, " levels");
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ':' && ++members > kMostMembers) {
      return absl::StrCat("has more than ", kMostMembers, " members");
    }
  }
  return "";
}

}  // namespace pawl
