#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl {

// SHA-256 in hexadecimal. A content address: it keeps no secret.
std::string Sha256(std::string_view data);

// HMAC-SHA-256 in hexadecimal: only who knows the key can make it.
std::string KeyedHash(std::string_view key, std::string_view text);

// Compares in a time that does not depend on where they differ.
bool SameBytes(std::string_view a, std::string_view b);

// From the operating system, for secrets and nonces. Ends the program where there is no randomness to be read.
std::string RandomBytes(size_t size);

}  // namespace pawl
