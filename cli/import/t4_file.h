#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/parameter_value.h"

namespace pawl {

// One configuration that an auto-tuner tried.
struct T4Result {
  std::map<std::string, ParameterValue> configuration;
  std::string invalidity;           // "correct", or why it failed: timeout, compile, runtime, correctness, constraints
  std::string error;                // what stands where a failed one's time would; may be empty
  std::vector<double> runtimes_us;  // of a correct one: at least one
  double compile_seconds = 0;
  double validate_seconds = 0;
  std::string timestamp;  // "2023-12-22 09:54:05"; may be empty
};

// What an auto-tuner measured, in the community's T4 format.
struct T4File {
  std::vector<T4Result> results;     // not empty; all with the same parameters, each configuration once
  std::string gpu;                   // as a cache file names it; T4 has no place for it
  std::vector<std::string> assumed;  // what the file does not say, and what was taken instead
};

// Reads T4 results and cache files of Kernel Tuner, compressed and plain. An error names the result (counted from 0)
// and what is wrong with it.
absl::StatusOr<T4File> ReadT4(const std::filesystem::path& file);

}  // namespace pawl
