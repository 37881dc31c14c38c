#include "cli/text/paragraph.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "cli/text/table.h"

namespace pawl {

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

int ReadingWidth(int fd) {
  const int width = TerminalWidth(fd);
  return width <= 0 ? 100 : std::min(width, 120);
}

}  // namespace pawl
