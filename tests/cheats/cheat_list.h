#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Where a cheat is recognised; see cheats.toml.
enum class CaughtBy { kReader, kLimits, kBuild, kGpu };

// One entry of cheats.toml. Its bundle is the folder of its name beside that file.
struct Cheat {
  std::string name;
  std::string what;
  std::vector<v1::Check> expect;  // any of these; the intended one first
  CaughtBy by = CaughtBy::kGpu;
  std::string harmless_as;  // VARIABLE=VALUE: may be accepted, if it is no faster than this variant of itself
};

struct Control {
  std::string name;
  std::string what;
};

struct CheatList {
  std::vector<Cheat> cheats;
  std::vector<Control> controls;
};

// Reads tests/cheats/cheats.toml. An error for anything that is missing, unknown or misspelt.
absl::StatusOr<CheatList> ReadCheatList(const std::filesystem::path& file);

}  // namespace pawl
