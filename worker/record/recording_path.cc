#include "worker/record/recording_path.h"

#include <cctype>

namespace pawl {
namespace {

// "NVIDIA H200" is h200.
std::string Slug(std::string name) {
  if (const size_t space = name.find(' '); name.rfind("NVIDIA ", 0) == 0) name = name.substr(space + 1);
  std::string slug;
  for (unsigned char c : name) slug += isalnum(c) ? static_cast<char>(tolower(c)) : '-';
  return slug;
}

}  // namespace

std::filesystem::path RecordingPath(const std::string& bundle, const std::string& gpu) {
  const std::filesystem::path shipped = "profiles/recordings", name = bundle + "." + Slug(gpu) + ".jsonl.gz";
  std::error_code error;
  return std::filesystem::is_directory(shipped, error) ? shipped / name : name;
}

}  // namespace pawl
