#include "base/text/paragraph.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace pawl {
namespace {

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

}  // namespace

int DisplayWidth(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), BeginsCodePoint));
}

std::string Cut(std::string_view text, int width) {
  if (width <= 0 || DisplayWidth(text) <= width) return std::string(text);
  size_t end = 0;
  for (int cells = 0; end < text.size(); ++end) {
    if (BeginsCodePoint(text[end]) && ++cells == width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n' || c == '\t' || c == '\r') {
      line += ' ';
    } else {
      line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    }
  }
  return line;
}

std::string Paragraph(std::string_view head, std::string_view text, int width) {
  const int indent = DisplayWidth(head);
  std::string lines(head), line;
  bool first = true;
  const auto end_line = [&] {
    if (!first) lines.append(static_cast<size_t>(indent), ' ');
    lines += line;
    lines.erase(lines.find_last_not_of(' ') + 1);
    lines += '\n';
    line.clear();
    first = false;
  };
  const std::string clean = OneLine(text);
  for (const absl::string_view word : absl::StrSplit(clean, ' ', absl::SkipEmpty())) {
    const std::string_view next(word.data(), word.size());
    if (!line.empty() && width > 0 && indent + DisplayWidth(line) + 1 + DisplayWidth(next) > width) end_line();
    if (!line.empty()) line += ' ';
    line += next;
  }
  end_line();
  return lines;
}

}  // namespace pawl
