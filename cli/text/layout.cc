#include "cli/text/layout.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace pawl {

namespace {

constexpr int kGap = 2;

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

Table::Layout Table::Fit(int width) const {
  Layout layout;
  for (size_t i = 0; i < columns_.size(); ++i) {
    int widest = DisplayWidth(columns_[i].title);
    for (const std::vector<std::string>& row : rows_) widest = std::max(widest, DisplayWidth(row[i]));
    layout.widths.push_back(widest);
    layout.columns.push_back(i);
  }
  if (width <= 0) return layout;
  // What is missing when columns that may shrink do so as far as `least` says.
  const auto missing = [&](bool least) {
    int needed = -kGap;
    for (const size_t i : layout.columns) {
      const int shrunk = columns_[i].shrinks_to;
      needed += kGap + (least && shrunk > 0 ? std::min(shrunk, layout.widths[i]) : layout.widths[i]);
    }
    return needed - width;
  };
  while (missing(/*least=*/true) > 0) {
    const auto out = std::max_element(layout.columns.begin(), layout.columns.end(), [&](size_t a, size_t b) {
      return columns_[a].dispensable < columns_[b].dispensable;
    });
    if (out == layout.columns.end() || columns_[*out].dispensable == 0) break;
    layout.columns.erase(out);
  }
  for (int over = missing(/*least=*/false); over > 0; --over) {
    size_t widest = columns_.size();
    for (const size_t i : layout.columns) {
      const int least = columns_[i].shrinks_to;
      if (least == 0 || layout.widths[i] <= least) continue;
      if (widest == columns_.size() || layout.widths[i] > layout.widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --layout.widths[widest];
  }
  return layout;
}

std::vector<std::string> Table::LeftOut(int width) const {
  const Layout layout = Fit(width);
  std::vector<std::string> titles;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (std::find(layout.columns.begin(), layout.columns.end(), i) == layout.columns.end()) {
      titles.push_back(columns_[i].title);
    }
  }
  return titles;
}

std::string Table::Text(int width, bool color) const {
  const Layout layout = Fit(width);
  std::string text;
  const auto add = [&](const std::vector<std::string>& cells, bool colored) {
    std::string line;
    std::vector<std::pair<size_t, const char*>> colors;  // where a coloured cell begins, and its colour
    std::vector<size_t> ends;
    for (const size_t i : layout.columns) {
      if (i != layout.columns.front()) line.append(kGap, ' ');
      const std::string cell = Cut(cells[i], layout.widths[i]);
      const std::string padded = Pad(cell, layout.widths[i], columns_[i].align);
      if (const char* escape = colored ? ColorOf(cell) : ""; *escape != '\0') {
        const size_t begin = line.size() + (columns_[i].align == Align::kRight ? padded.size() - cell.size() : 0);
        colors.emplace_back(begin, escape);
        ends.push_back(begin + cell.size());
      }
      line += padded;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    line = Cut(line, width);
    for (size_t i = colors.size(); i-- > 0;) {
      if (ends[i] > line.size()) continue;
      line.insert(ends[i], kNoColor);
      line.insert(colors[i].first, colors[i].second);
    }
    text += line + "\n";
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  if (std::any_of(titles.begin(), titles.end(), [](const std::string& title) { return !title.empty(); })) {
    add(titles, false);
  }
  for (const std::vector<std::string>& row : rows_) add(row, color);
  return text;
}

const char* ColorOf(std::string_view word) {
  if (word == "kept") return "\x1b[32m";
  if (word == "reverted") return "\x1b[90m";
  if (word == "rejected" || word == "failed") return "\x1b[31m";
  if (word == "running" || word == "busy") return "\x1b[34m";
  return "";
}

bool TakesColor(int fd) {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(fd) && (none == nullptr || *none == '\0') && terminal != nullptr && *terminal != '\0' &&
         std::string_view(terminal) != "dumb";
}

std::string Colored(std::string_view text, std::string_view word, bool color) {
  const char* escape = color ? ColorOf(word) : "";
  return *escape == '\0' ? std::string(text)
                         : absl::StrCat(escape, absl::string_view(text.data(), text.size()), kNoColor);
}

bool PrintText(std::string_view text) {
  const std::string shown = isatty(STDOUT_FILENO) ? WithoutControls(text) : std::string(text);
  return std::fwrite(shown.data(), 1, shown.size(), stdout) == shown.size() && std::fflush(stdout) == 0;
}

int TerminalWidth(int fd) {
  winsize size = {};
  if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

int ReadingWidth(int fd) {
  const int width = TerminalWidth(fd);
  return width <= 0 ? 100 : std::min(width, 120);
}

}  // namespace pawl
