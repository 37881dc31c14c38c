#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pawl {

// Columns that people read: as wide as their widest cell, numbers to the right, the last one cut where the terminal
// ends.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void Add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // The titles (unless all are empty), then a line a row. `width` 0: nothing is cut.
  std::string Text(int width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// In code points: nothing that Pawl prints is wider than one cell.
int DisplayWidth(std::string_view text);

// The text in at most `width` cells, an ellipsis for what is missing. 0: as it is.
std::string Cut(std::string_view text, int width);

// Line breaks become spaces, other control characters question marks: a compiler's message must not move the cursor.
std::string OneLine(std::string_view text);

// Of the terminal that a stream goes to; 0: it is none.
int TerminalWidth(int fd);

// A head ("  finding    ") and a text, broken at spaces so that no line is longer than `width` cells; later lines begin
// below the text's beginning. A word that is longer than a line stays whole. 0: nothing is broken.
std::string Paragraph(std::string_view head, std::string_view text, int width);

// What people read without a ruler: the terminal's width, 100 where there is none, at most 120.
int ReadingWidth(int fd);

}  // namespace pawl
