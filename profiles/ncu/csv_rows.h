// Splits CSV text into rows of cells: quotes, doubled quotes, line breaks inside quotes.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace pawl {

// Reads row by row. Lines that begin with `==` (ncu's own talk) and empty lines are passed over.
// Cells point into the text, or into storage that the next call of Next overwrites.
class CsvRows {
 public:
  // `text` must outlive the reader.
  explicit CsvRows(std::string_view text) : text_(text) {}

  // Passes over whole lines up to the first that begins with `prefix`. False when there is none.
  bool SkipTo(std::string_view prefix);

  // Fills `cells` with the next row. False at the end of the text or at an error; status() says which.
  bool Next(std::vector<std::string_view>* cells);

  const absl::Status& status() const { return status_; }
  // Where the row that Next gave last begins; the first line is 1.
  int line() const { return line_; }
  // Every line that began with `==ERROR==`, without that mark.
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  void SkipTalk();
  std::string_view Line() const;
  void SkipLine();
  bool ReadQuoted(std::vector<std::string_view>* cells);
  bool Fail(int line, const std::string& what);

  std::string_view text_;
  size_t at_ = 0;
  int next_line_ = 1;
  int line_ = 0;
  std::deque<std::string> unescaped_;  // a deque: cells point at its strings while it grows
  std::vector<std::string> errors_;
  absl::Status status_;
};

// One cell of ncu's CSV.

// ncu's ways to print that there is no value. It must never be read as 0.
bool IsMissing(std::string_view cell);

// "1,048,576.25" and the like; commas only where they separate thousands. No value for anything else, which includes
// numbers of other locales as far as they can be told apart.
std::optional<double> ParseNumber(std::string_view cell);

// Whether `--print-units base` prints this unit. Scaled units (Kbyte, us) are not base: reading one as its base unit
// would be off by a thousand.
bool IsBaseUnit(std::string_view unit);

}  // namespace pawl
