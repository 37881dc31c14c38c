#include "agent/mcp/json.h"

namespace pawl {

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

}  // namespace pawl
