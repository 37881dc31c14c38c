#pragma once

#include <string>
#include <string_view>

namespace pawl {

// At most so many bytes of a UTF-8 text, cut between characters: a protobuf string with half a character in it can be
// written, but not read again.
std::string Shortened(std::string_view text, size_t bytes);

}  // namespace pawl
