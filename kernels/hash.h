#pragma once

#include <string>
#include <string_view>

namespace pawl {

// SHA-256 in hex. A content address: it keeps no secret.
std::string Sha256(std::string_view data);

}  // namespace pawl
