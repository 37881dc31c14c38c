#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/build/compilation.h"

namespace pawl {

// `nvcc -cubin` in a private temporary folder, which is removed afterwards. Everything nvcc starts stays in the
// caller's process group, so that who kills the caller's group leaves no cicc behind.
Compilation CompileWithNvcc(const std::string& nvcc, const std::string& source, const std::string& name,
                            const std::vector<std::string>& options, absl::Duration timeout);

}  // namespace pawl
