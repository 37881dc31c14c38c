#pragma once

#include <map>
#include <string>
#include <vector>

#include "pawl/v1/evidence.pb.h"

namespace pawl {

// Where the parts of CUDA's toolkit are on this machine. An empty path: not found. Paths that the builder's sandbox
// must show (root, nvcc, nvrtc, include) are real paths, without symbolic links.
struct Toolkit {
  std::string root;
  std::string nvcc;
  std::string nvrtc;    // the library
  std::string include;  // has cuda_fp16.h
  std::string ncu;
  std::string compute_sanitizer;
  std::string cupti;                             // the library
  std::map<std::string, std::string> libraries;  // further header libraries that builds may use: names to folders
  std::vector<std::string> looked_in;            // for "not found" messages
};

// Looks at CUDA_HOME and CUDA_PATH, then PATH, then /usr/local/cuda and the usual other places. PAWL_NVCC, PAWL_NVRTC,
// PAWL_CUDA_INCLUDE, PAWL_NCU, PAWL_COMPUTE_SANITIZER and PAWL_CUPTI name a part outright (PAWL_NVRTC may be the
// library that comes with PyTorch). PAWL_INCLUDE lists header libraries,
// cutlass=/opt/cutlass/include,...; what is wrong there is left out: pawl-worker, which has the same option, reports
// it.
Toolkit FindToolkit();
Toolkit FindToolkit(const std::map<std::string, std::string>& environment);

// Asks each tool that is there for its version, side by side. A tool that does not answer has none.
v1::Toolchain ToolVersions(const Toolkit& toolkit);

// Operating system, architecture and CPU count of this machine, no name: "Linux x86_64, 16 CPUs".
std::string HostText();

}  // namespace pawl
