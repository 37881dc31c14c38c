#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace pawl {

// Keys keep their order: a result says first what matters.
using Json = nlohmann::ordered_json;

// Null: the value is no object, or has no such key.
const Json* JsonAt(const Json& value, const char* key);
// Empty: there is no text of this key.
std::string TextAt(const Json& value, const char* key);
// In one line, or indented by so many spaces. Bytes that are no UTF-8 are replaced.
std::string JsonText(const Json& value, int indent = -1);

}  // namespace pawl
