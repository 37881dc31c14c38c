#pragma once

#include <string>
#include <string_view>

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

// Why a text must not be parsed: "is nested deeper than 64 levels". The parser has no limit, and an object of ten times
// as many members takes it a hundred times as long. Empty: it may be.
std::string JsonExcess(std::string_view text);

}  // namespace pawl
