#include "base/text/paragraph.h"

#include <algorithm>

#include "absl/strings/str_split.h"

namespace pawl {
namespace {

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

// Bytes of the control character that begins here; 0: it is none. U+0080 to U+009F are what some terminals take as ESC
// and a letter.
size_t ControlAt(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte == 0xC2 && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xA0) return 2;
  return byte < 0x20 || byte == 0x7F ? 1 : 0;
}

// Control characters other than these become question marks.
std::string Replaced(std::string_view text, std::string_view kept) {
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const size_t control = kept.find(text[i]) == std::string_view::npos ? ControlAt(text, i) : 0;
    shown += control > 0 ? '?' : text[i];
    i += std::max<size_t>(control, 1);
  }
  return shown;
}

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
  std::string line = Replaced(text, "\n\t\r");
  for (const char blank : {'\n', '\t', '\r'}) std::replace(line.begin(), line.end(), blank, ' ');
  return line;
}

std::string WithoutControls(std::string_view text) { return Replaced(text, "\n\t"); }

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
