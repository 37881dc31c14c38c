#include "cli/follow/live_lines.h"

#include <algorithm>

#include "cli/text/layout.h"

namespace pawl {

void LiveLines::Set(const std::vector<std::string>& lines, int width) {
  std::vector<std::string> cut;
  for (const std::string& line : lines) cut.push_back(Cut(OneLine(line), width));
  if (cut == shown_ && width == width_) return;
  width_ = width;
  Clear(width);
  for (const std::string& line : cut) std::fprintf(out_, "%s\n", line.c_str());
  std::fflush(out_);
  shown_ = std::move(cut);
}

void LiveLines::Clear(int width) {
  // Up by as many lines, then everything below is erased.
  int rows = 0;
  for (const std::string& line : shown_) rows += width > 0 ? std::max(1, (DisplayWidth(line) + width - 1) / width) : 1;
  if (rows > 0) std::fprintf(out_, "\x1b[%dA\r\x1b[J", rows);
  std::fflush(out_);
  shown_.clear();
}

}  // namespace pawl
