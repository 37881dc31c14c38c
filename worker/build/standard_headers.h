// The parts of the C and C++ standard library that device code includes, for NVRTC, which has none of its own: <cmath>,
// <cstdint>, <type_traits> and such, made from CUDA's own functions and libcu++; and <cuda.h> without its host
// functions. nvcc has the host's.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace pawl {

struct StandardHeader {
  std::string name;  // as #include has it
  std::string text;
  bool only_std;  // it declares nothing but names of std, and takes long to compile
};

// Those that can be made where the toolkit's headers are in this folder.
const std::vector<StandardHeader>& StandardHeaders(const std::string& toolkit_include);

}  // namespace pawl
