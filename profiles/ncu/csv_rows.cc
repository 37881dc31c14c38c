#include "profiles/ncu/csv_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace pawl {

std::string_view CsvRows::Line() const {
  const size_t end = std::min(text_.find('\n', at_), text_.size());
  std::string_view line = text_.substr(at_, end - at_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

void CsvRows::SkipLine() {
  constexpr std::string_view kError = "==ERROR== ";
  if (Line().starts_with(kError)) errors_.emplace_back(Line().substr(kError.size()));
  at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
  ++next_line_;
}

void CsvRows::SkipTalk() {
  while (at_ < text_.size() && (Line().empty() || Line().starts_with("=="))) SkipLine();
}

bool CsvRows::SkipTo(std::string_view prefix) {
  while (at_ < text_.size() && !Line().starts_with(prefix)) SkipLine();
  return at_ < text_.size();
}

bool CsvRows::Fail(int line, const std::string& what) {
  status_ = absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what));
  return false;
}

bool CsvRows::ReadQuoted(std::vector<std::string_view>* cells) {
  const int opened = next_line_;
  const size_t begin = ++at_;
  bool doubled = false;
  for (;; ++at_) {
    at_ = text_.find('"', at_);
    if (at_ == std::string_view::npos) {
      at_ = text_.size();
      return Fail(opened, "a quote is opened and never closed: the file is cut short or damaged");
    }
    if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') break;
    doubled = true;
    ++at_;
  }
  std::string_view cell = text_.substr(begin, at_ - begin);
  next_line_ += static_cast<int>(std::count(cell.begin(), cell.end(), '\n'));
  ++at_;
  if (doubled) {
    unescaped_.push_back(absl::StrReplaceAll(std::string(cell), {{"\"\"", "\""}}));
    cell = unescaped_.back();
  }
  cells->push_back(cell);
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n') {
    return Fail(next_line_, "text after a closing quote: quotes are unbalanced or the file is damaged");
  }
  return true;
}

bool CsvRows::Next(std::vector<std::string_view>* cells) {
  cells->clear();
  unescaped_.clear();
  if (!status_.ok()) return false;
  SkipTalk();
  if (at_ >= text_.size()) return false;
  line_ = next_line_;
  for (;;) {
    if (at_ < text_.size() && text_[at_] == '"') {
      if (!ReadQuoted(cells)) return false;
    } else {
      const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
      std::string_view cell = text_.substr(at_, end - at_);
      if (cell.ends_with('\r')) cell.remove_suffix(1);
      if (cell.find('"') != cell.npos) return Fail(next_line_, "a quote in the middle of a cell: the file is damaged");
      cells->push_back(cell);
      at_ = end;
    }
    if (at_ >= text_.size()) return true;
    if (text_[at_++] == '\n') {
      ++next_line_;
      return true;
    }
  }
}

}  // namespace pawl
