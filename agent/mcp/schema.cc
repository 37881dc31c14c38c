#include "agent/mcp/schema.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names/spelling.h"

namespace pawl {
namespace {

// Written as a float, and so small that no other number is written the same.
bool IsWholeFloat(const Json& value) {
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  return std::trunc(number) == number && std::abs(number) <= 9007199254740992.0;
}

bool IsOfType(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer() || IsWholeFloat(value);
  return type == "null" && value.is_null();
}

std::string At(const std::string& path, const std::string& mistake) {
  return path.empty() ? mistake : absl::StrCat(path, ": ", mistake);
}

// One type or several.
std::vector<std::string> TypesIn(const Json& types) {
  std::vector<std::string> known;
  for (const Json& type : types.is_array() ? types : Json::array({types})) known.push_back(type.get<std::string>());
  return known;
}

std::string TypeMistake(const Json& value, const Json& types) {
  const std::vector<std::string> known = TypesIn(types);
  for (const std::string& type : known) {
    if (IsOfType(value, type)) return "";
  }
  return absl::StrCat("expected ", absl::StrJoin(known, " or "), ", got ", value.type_name());
}

std::string SizeMistake(const Json& value, const Json& schema) {
  const auto beyond = [&](const char* key, double size, bool most) {
    const Json* limit = JsonAt(schema, key);
    return limit != nullptr && (most ? size > limit->get<double>() : size < limit->get<double>());
  };
  const auto said = [&](const char* words, const char* key) { return absl::StrCat(words, JsonText(schema[key])); };
  if (value.is_number()) {
    if (beyond("minimum", value.get<double>(), false)) return said("expected at least ", "minimum");
    if (beyond("maximum", value.get<double>(), true)) return said("expected at most ", "maximum");
  } else if (value.is_string()) {
    const auto size = static_cast<double>(value.get_ref<const std::string&>().size());
    if (beyond("minLength", size, false)) return "expected a string that is not empty";
    if (beyond("maxLength", size, true)) return absl::StrCat(said("expected at most ", "maxLength"), " bytes");
  } else if (value.is_array() && beyond("maxItems", static_cast<double>(value.size()), true)) {
    return absl::StrCat(said("expected at most ", "maxItems"), " items");
  } else if (value.is_object() && beyond("maxProperties", static_cast<double>(value.size()), true)) {
    return absl::StrCat(said("expected at most ", "maxProperties"), " entries");
  }
  return "";
}

std::string MistakeAt(const std::string& path, const Json& value, const Json& schema);

std::string ObjectMistake(const std::string& path, const Json& value, const Json& schema) {
  if (const Json* required = JsonAt(schema, "required")) {
    for (const Json& name : *required) {
      if (!value.contains(name.get<std::string>())) {
        return At(path, absl::StrCat("missing: ", name.get<std::string>()));
      }
    }
  }
  const Json* properties = JsonAt(schema, "properties");
  const Json* others = JsonAt(schema, "additionalProperties");
  for (const auto& [name, each] : value.items()) {
    const std::string below = path.empty() ? name : absl::StrCat(path, ".", name);
    if (const Json* known = properties == nullptr ? nullptr : JsonAt(*properties, name.c_str())) {
      if (std::string mistake = MistakeAt(below, each, *known); !mistake.empty()) return mistake;
    } else if (others != nullptr && others->is_boolean() && !others->get<bool>()) {
      std::vector<std::string> names;
      if (properties != nullptr) {
        for (const auto& property : properties->items()) names.push_back(property.key());
      }
      return At(path, absl::StrCat("unknown: ", name.substr(0, 64), Expected(name.substr(0, 64), names)));
    } else if (others != nullptr && others->is_object()) {
      if (std::string mistake = MistakeAt(below, each, *others); !mistake.empty()) return mistake;
    }
  }
  return "";
}

std::string MistakeAt(const std::string& path, const Json& value, const Json& schema) {
  if (const Json* type = JsonAt(schema, "type")) {
    if (std::string mistake = TypeMistake(value, *type); !mistake.empty()) return At(path, mistake);
  }
  if (const Json* known = JsonAt(schema, "enum")) {
    bool found = false;
    std::vector<std::string> words;
    for (const Json& each : *known) {
      found = found || each == value;
      words.push_back(each.is_string() ? each.get<std::string>() : JsonText(each));
    }
    if (!found) return At(path, absl::StrCat("expected ", absl::StrJoin(words, ", ")));
  }
  if (std::string mistake = SizeMistake(value, schema); !mistake.empty()) return At(path, mistake);
  if (value.is_object()) return ObjectMistake(path, value, schema);
  if (const Json* items = JsonAt(schema, "items"); items != nullptr && value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      if (std::string mistake = MistakeAt(absl::StrCat(path, "[", i, "]"), value[i], *items); !mistake.empty()) {
        return mistake;
      }
    }
  }
  return "";
}

}  // namespace

std::string SchemaMistake(const Json& value, const Json& schema) { return MistakeAt("", value, schema); }

Json WithTypesOf(Json arguments, const Json& schema) {
  const Json* properties = JsonAt(schema, "properties");
  if (properties == nullptr || !arguments.is_object()) return arguments;
  for (const auto& [name, property] : properties->items()) {
    const auto given = arguments.find(name);
    if (given == arguments.end()) continue;
    const Json* known = JsonAt(property, "type");
    const std::vector<std::string> types = known == nullptr ? std::vector<std::string>() : TypesIn(*known);
    const bool whole = std::any_of(types.begin(), types.end(),
                                   [](const std::string& type) { return type == "integer" || type == "string"; });
    if (whole && IsWholeFloat(*given)) *given = static_cast<int64_t>(given->get<double>());
    const std::string type = types.size() == 1 ? types[0] : "";
    int64_t number = 0;
    if (type == "string" && given->is_number_integer()) {
      *given = JsonText(*given);
    } else if ((type == "integer" || type == "number") && given->is_string() &&
               absl::SimpleAtoi(given->get_ref<const std::string&>(), &number)) {
      *given = number;
    }
  }
  return arguments;
}

}  // namespace pawl
