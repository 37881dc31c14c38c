// The real ncu output that lies in golden/.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "profiles/ncu/ncu_csv.h"

namespace pawl {

inline std::string Golden(const std::string& file) {
  const char* root = std::getenv("PAWL_SOURCE_DIR");
  const std::string path = std::string(root ? root : ".") + "/tests/profiles/golden/ncu-h200/" + file;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Read once: the full set is large.
inline const std::vector<NcuKernel>& GoldenKernels(const std::string& file) {
  static auto& read = *new std::map<std::string, std::vector<NcuKernel>>;
  if (!read.contains(file)) {
    auto kernels = ReadNcuRaw(Golden(file));
    EXPECT_TRUE(kernels.ok()) << kernels.status();
    read[file] = kernels.ok() ? *std::move(kernels) : std::vector<NcuKernel>();
  }
  return read[file];
}

}  // namespace pawl
