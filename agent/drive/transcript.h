#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace pawl {

inline constexpr size_t kMostTranscript = 64 << 20;

// A file of what an agent said or did, kept up to a limit, with a last line that says so. For one thread.
class Transcript {
 public:
  // An empty path: nothing is written.
  explicit Transcript(const std::filesystem::path& file, size_t most = kMostTranscript);

  // As much of it as there is room for.
  void Add(std::string_view text);
  // All of it or nothing: a line of JSON. Nothing more is taken after one that there was no room for.
  void AddLine(std::string_view line);

 private:
  const size_t most_;
  std::ofstream out_;
  size_t written_ = 0;
  bool cut_ = false;
};

}  // namespace pawl
