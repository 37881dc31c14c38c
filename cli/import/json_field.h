// Fields of JSON that others wrote, where anything may stand anywhere.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pawl {

// Null where it is no object, or has no such key.
const nlohmann::json& JsonField(const nlohmann::json& object, const char* key);
// Empty where there is no text.
std::string JsonText(const nlohmann::json& object, const char* key);
// 0 where there is no number.
double JsonNumber(const nlohmann::json& object, const char* key);

}  // namespace pawl
