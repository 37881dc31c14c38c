#pragma once

#include <string>
#include <string_view>

namespace pawl {

// HMAC-SHA-256 in hexadecimal: only who knows the key can make it.
std::string KeyedHash(std::string_view key, std::string_view text);

// Compares in a time that does not depend on where they differ.
bool SameBytes(std::string_view a, std::string_view b);

}  // namespace pawl
