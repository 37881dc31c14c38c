#include "cli/import/parameter_value.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace pawl {

std::optional<ParameterValue> ParameterValue::Of(const nlohmann::json& json) {
  ParameterValue value;
  if (json.is_string()) {
    value.text = json.get<std::string>();
    return value;
  }
  if (json.is_boolean()) {
    value.text = json.get<bool>() ? "true" : "false";
    value.number = json.get<bool>() ? 1 : 0;
  } else if (json.is_number()) {
    value.number = json.get<double>();
    if (!std::isfinite(*value.number)) return std::nullopt;
    value.text = json.dump();  // as many figures as it takes
  } else {
    return std::nullopt;
  }
  if (*value.number == std::floor(*value.number) && *value.number >= std::numeric_limits<int32_t>::min() &&
      *value.number <= std::numeric_limits<int32_t>::max()) {
    value.whole = static_cast<int32_t>(*value.number);
    if (json.is_number()) value.text = absl::StrCat(*value.whole);
  }
  return value;
}

bool operator==(const ParameterValue& a, const ParameterValue& b) {
  if (a.number.has_value() != b.number.has_value()) return false;
  return a.number ? *a.number == *b.number : a.text == b.text;
}

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
