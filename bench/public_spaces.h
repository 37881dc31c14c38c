#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/measured_space.h"

namespace pawl {

// A space that others measured: times only. Where its constraints are not stated, a variant that was not measured is
// not allowed.
struct PublicSpace {
  MeasuredSpace space;
  std::string kernel;                // spaces of one kernel are left out together
  std::map<std::string, int> peers;  // evaluations of other searches to within 10 %, median, by their names
};

// Those that the folder's spaces.toml lists:
//
//   [[space]]
//   name         = "convolution"
//   kernel       = "convolution"            # optional: its group where it is not the name
//   gpu          = "A100"
//   file         = "convolution_A100.csv.gz" # or .t4.json, .t4.json.gz
//   constraints  = ["block_size_x * block_size_y <= 1024"]     # optional
//   kernel_tuner = 102                      # optional: evaluations of its best strategy, or { strategy = 102, … }
//
// Without that file, every CSV and T4 file of the folder, named KERNEL_GPU. A CSV file has a column for each variable,
// then time_ms and ok; further columns are ignored. Values that are no whole numbers are numbered in their order.
absl::StatusOr<std::vector<PublicSpace>> ReadPublicSpaces(const std::filesystem::path& folder);

}  // namespace pawl
