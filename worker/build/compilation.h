#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace pawl {

// What a compiler made of a source, and whose fault it was if nothing.
struct Compilation {
  enum class Result {
    kOk,
    kSourceRefused,
    kOptionRefused,
    kOutOfMemory,  // killed, or no memory left: another try may succeed
    kTimedOut,
    kBroken,  // the machine's fault: a part of the toolkit is missing, or too old for the architecture
  };

  Result result = Result::kOk;
  std::string cubin;
  std::string log;
  std::string error;  // the compiler's word for the result, where it is not kOk
};

// A compilation that did not come about, through this machine's fault.
inline Compilation Broken(const std::string& error) {
  Compilation compilation;
  compilation.result = Compilation::Result::kBroken;
  compilation.error = error;
  return compilation;
}

// `nvcc -cubin` in a private temporary folder, which is removed afterwards. Everything nvcc starts stays in the
// caller's process group, so that who kills the caller's group leaves no cicc behind.
Compilation CompileWithNvcc(const std::string& nvcc, const std::string& source, const std::string& name,
                            const std::vector<std::string>& options, absl::Duration timeout);

}  // namespace pawl
