#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/import/parameter_value.h"

namespace pawl {

// A tuning problem in the auto-tuning community's T1 format: what spans the space.
struct T1Problem {
  struct Parameter {
    std::string name;
    std::vector<ParameterValue> values;
    std::optional<ParameterValue> preset;  // its "Default"
  };
  std::string name;    // of the benchmark; may be empty
  std::string kernel;  // the entry's name; may be empty
  std::vector<Parameter> parameters;
  std::vector<std::string> conditions;  // Python expressions
  std::vector<int32_t> problem_size;    // may be empty
};

// An error where values are not a list of literals, but code that makes one.
absl::StatusOr<T1Problem> ReadT1(const std::filesystem::path& file);

}  // namespace pawl
