#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/paragraph.h"

namespace pawl {

// Columns that people read: as wide as their widest cell, numbers to the right. On a terminal that is too narrow,
// columns are left out, those that say least first, then cells of the columns that may shrink are cut, at last the
// line.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    int dispensable = 0;  // the highest is left out first; 0: never
    int shrinks_to = 0;   // cells may be cut to so many characters; 0: never
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // The titles (unless all are empty), then a line a row. `width` 0: nothing is left out or cut. With `color`, verdicts
  // and states have theirs (ColorOf).
  std::string Text(int width, bool color = false) const;
  // The titles of the columns that a terminal of this width has no room for.
  std::vector<std::string> LeftOut(int width) const;

 private:
  // The columns that are shown, and their widths.
  struct Layout {
    std::vector<size_t> columns;
    std::vector<int> widths;  // of all columns
  };
  Layout Fit(int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// One colour language: kept is green, reverted grey, rejected and failed red, running and busy blue. The escape
// sequence of a verdict's or a state's word; empty for any other.
const char* ColorOf(std::string_view word);
inline constexpr char kNoColor[] = "\x1b[0m";

// A terminal that can show colours, and nobody forbids them (NO_COLOR, TERM=dumb).
bool TakesColor(int fd);

// The text in the colour of a verdict's or state's word; as it is where `color` is false or the word has none.
std::string Colored(std::string_view text, std::string_view word, bool color);

// Other people's text on standard output: on a terminal without control characters, elsewhere as it is. False: it can't
// be written.
bool PrintText(std::string_view text);

// Of the terminal that a stream goes to; 0: it is none.
int TerminalWidth(int fd);

// What people read without a ruler: the terminal's width, 100 where there is none, at most 120.
int ReadingWidth(int fd);

}  // namespace pawl
