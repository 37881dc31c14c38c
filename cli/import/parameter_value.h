#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace pawl {

// One value of a parameter in other people's files, where a parameter may be a number, a flag or a text.
struct ParameterValue {
  std::string text;              // as a person would write it
  std::optional<double> number;  // of numbers; 0 and 1 of flags
  std::optional<int32_t> whole;  // where the number is one that a variable of a bundle can have

  // Nothing: it is no number, flag or text.
  static std::optional<ParameterValue> Of(const nlohmann::json& json);
};

// 1 and 1.0 are the same.
bool operator==(const ParameterValue& a, const ParameterValue& b);

// Null where it is no object, or has no such key.
const nlohmann::json& JsonField(const nlohmann::json& object, const char* key);
// Empty where there is no text.
std::string JsonText(const nlohmann::json& object, const char* key);
// 0 where there is no number.
double JsonNumber(const nlohmann::json& object, const char* key);

}  // namespace pawl
