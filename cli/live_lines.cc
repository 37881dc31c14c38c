#include "cli/live_lines.h"

#include "cli/table.h"

namespace pawl {

void LiveLines::Set(const std::vector<std::string>& lines) {
  std::vector<std::string> cut;
  for (const std::string& line : lines) cut.push_back(Cut(OneLine(line), width_));
  if (cut == shown_) return;
  Clear();
  for (const std::string& line : cut) std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  shown_ = std::move(cut);
}

void LiveLines::Clear() {
  // Up by as many lines, then everything below is erased.
  if (!shown_.empty()) std::fprintf(out_, "\x1b[%zuA\r\x1b[J", shown_.size());
  std::fflush(out_);
  shown_.clear();
}

}  // namespace pawl
