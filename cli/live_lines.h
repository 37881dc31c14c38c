#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace pawl {

// A few lines at the end of a terminal that change in place, below lines that stay.
class LiveLines {
 public:
  // `width` cells: a longer line would wrap, and could not be taken back.
  LiveLines(std::FILE* out, int width) : out_(out), width_(width) {}
  ~LiveLines() { Clear(); }
  LiveLines(const LiveLines&) = delete;

  void Set(const std::vector<std::string>& lines);
  // Takes them away, so that something else can be printed in their place.
  void Clear();

 private:
  std::FILE* const out_;
  const int width_;
  std::vector<std::string> shown_;
};

}  // namespace pawl
