// What the text of a kernel says about thread block clusters.
#pragma once

#include <string>
#include <vector>

#include "kernels/source/cpp_tokens.h"

namespace pawl {

struct ClusterUse {
  std::vector<std::string> dims;  // of __cluster_dims__(2, 1, 1), as written, at most 3; empty: it has none
  int dims_line = 0;
  int line = 0;      // of the first use of a cluster in the body; 0: there is none
  std::string what;  // that was found there: "this_cluster()"
};

// `name` is the token with the kernel's name, `body` that of its {.
ClusterUse FindClusterUse(const std::vector<CppToken>& tokens, size_t name, size_t body);

}  // namespace pawl
