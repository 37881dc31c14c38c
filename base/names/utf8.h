#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pawl {

// Bytes of the valid UTF-8 character at the front of a text; 0: there is none.
size_t CharacterLength(std::string_view text);

// The text with every byte that is no part of valid UTF-8 replaced by '?': a protobuf string must be valid, and what a
// compiler quotes from a source need not be.
std::string ValidUtf8(std::string_view text);

// A text of the user's as a message shows it: valid UTF-8 with control characters as \n or \x1b. Quotes and backslashes
// stay as they were written.
std::string Printable(std::string_view text);

// At most so many bytes of a UTF-8 text, cut between characters: a protobuf string with half a character in it can be
// written, but not read again.
std::string Shortened(std::string_view text, size_t bytes);

}  // namespace pawl
