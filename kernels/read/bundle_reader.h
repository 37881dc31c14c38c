#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "kernels/problem.h"
#include "pawl/v1/bundle.pb.h"

namespace pawl {

struct BundleReading {
  v1::Bundle bundle;  // usable only when problems is empty
  std::vector<Problem> problems;
  std::vector<Problem> warnings;  // what is allowed, and may be a mistake
};

// Reads kernel.toml and the sources it names. Notes every mistake, not the first only. Nothing in the folder makes it
// crash, read outside of the folder, or take much memory. Relations between tables (a constraint that forbids the start
// variant, a geometry that is no whole number) are judged once each table is sound by itself.
BundleReading ReadBundle(const std::filesystem::path& folder);

}  // namespace pawl
