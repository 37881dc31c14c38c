#include "base/names/utf8.h"

#include <cstdint>

namespace pawl {

size_t CharacterLength(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned char first = text[0];
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 && first < 0xf5   ? 4
                        : first >= 0xe0 && first < 0xf0 ? 3
                        : first >= 0xc2 && first < 0xe0 ? 2
                                                        : 0;
  if (length == 0 || text.size() < length) return 0;
  uint32_t code = first & (0xff >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const unsigned char next = text[i];
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  const bool too_long = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool forbidden = code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
  return too_long || forbidden ? 0 : length;
}

std::string ValidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    if (length == 0) {
      valid += '?';
      text.remove_prefix(1);
    } else {
      valid += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
  return valid;
}

std::string Printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string shown;
  for (const char c : ValidUtf8(text)) {
    const unsigned char byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte != 127) {
      shown += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      shown += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else {
      shown += std::string("\\x") + kDigits[byte >> 4] + kDigits[byte & 15];
    }
  }
  return shown;
}

std::string Shortened(std::string_view text, size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && (text[bytes] & 0xC0) == 0x80) --bytes;
  return std::string(text.substr(0, bytes));
}

}  // namespace pawl
