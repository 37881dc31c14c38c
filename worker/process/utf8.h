#pragma once

#include <string>
#include <string_view>

namespace pawl {

// The text with every byte that is no part of valid UTF-8 replaced by '?': a protobuf string must be valid, and what a
// compiler quotes from a source need not be.
std::string ValidUtf8(std::string_view text);

}  // namespace pawl
