#pragma once

#include <istream>
#include <optional>
#include <string>

namespace pawl {

// A file of settings as a whole. Nothing: it is longer than 1 MB, and perhaps has no end (/dev/zero).
inline std::optional<std::string> ReadSettings(std::istream& in) {
  constexpr std::streamsize kMost = 1 << 20;
  std::string text(kMost + 1, '\0');
  in.read(text.data(), kMost + 1);
  if (in.gcount() > kMost) return std::nullopt;
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

}  // namespace pawl
