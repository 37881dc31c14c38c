#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
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
  std::string kind;  // the key `class`: one of CheatKinds
  std::string what;
  std::vector<v1::Check> expect;  // any of these; the intended one first
  CaughtBy by = CaughtBy::kGpu;
  // Values of variables that differ from the start variant's: this change cheats. Empty: the start variant itself does.
  std::map<std::string, int32_t> variant;
  // A second change, made from the first where that was kept. Values beside the start variant's, as above.
  std::map<std::string, int32_t> then;
  std::optional<int> stamped;  // seconds from the campaign's begin to the time that its source names
  std::string spares;          // VARIABLE=VALUE: an honest change that must be kept after it, however it ends
  std::string harmless_as;     // VARIABLE=VALUE: may be accepted, if it is no faster than this variant of itself
};

struct Control {
  std::string name;
  std::string what;
};

struct CheatList {
  std::vector<Cheat> cheats;
  std::vector<Control> controls;
};

// Every value of the key `class`.
const std::vector<std::string>& CheatKinds();

// Reads tests/cheats/cheats.toml. An error for anything that is missing, unknown or misspelt.
absl::StatusOr<CheatList> ReadCheatList(const std::filesystem::path& file);

}  // namespace pawl
