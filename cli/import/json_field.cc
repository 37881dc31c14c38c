#include "cli/import/json_field.h"

namespace pawl {

const nlohmann::json& JsonField(const nlohmann::json& object, const char* key) {
  static const nlohmann::json& none = *new nlohmann::json();
  if (!object.is_object()) return none;
  const auto found = object.find(key);
  return found == object.end() ? none : *found;
}

std::string JsonText(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = JsonField(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

double JsonNumber(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = JsonField(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

}  // namespace pawl
