#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace pawl {

// A few lines at the end of a terminal that change in place, below lines that stay.
class LiveLines {
 public:
  explicit LiveLines(std::FILE* out) : out_(out) {}
  ~LiveLines() { Clear(width_); }
  LiveLines(const LiveLines&) = delete;

  // In a terminal of `width` cells, where a longer line would wrap: it is cut.
  void Set(const std::vector<std::string>& lines, int width);
  // Takes them away, so that something else can be printed in their place. A terminal that became narrower has wrapped
  // them.
  void Clear(int width);

 private:
  std::FILE* const out_;
  int width_ = 0;
  std::vector<std::string> shown_;
};

}  // namespace pawl
