#include "cli/text/layout.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_split.h"

namespace pawl {

namespace {

constexpr int kGap = 2;

bool BeginsCodePoint(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::string Pad(const std::string& text, int width, Table::Align align) {
  const std::string space(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ');
  return align == Table::Align::kRight ? space + text : text + space;
}

}  // namespace

void Table::Add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = OneLine(cell);
  rows_.push_back(std::move(cells));
}

std::string Table::Text(int width) const {
  std::vector<std::string> titles;
  std::vector<int> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    int widest = DisplayWidth(columns_[i].title);
    for (const std::vector<std::string>& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    widths.push_back(widest);
  }
  std::string text;
  auto add = [&](const std::vector<std::string>& cells) {
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line.append(kGap, ' ');
      line += Pad(cells[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += Cut(line, width) + "\n";
  };
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); })) add(titles);
  for (const std::vector<std::string>& row : rows_) add(row);
  return text;
}

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

int TerminalWidth(int fd) {
  winsize size = {};
  if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
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

int ReadingWidth(int fd) {
  const int width = TerminalWidth(fd);
  return width <= 0 ? 100 : std::min(width, 120);
}

}  // namespace pawl
