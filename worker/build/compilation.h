#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/build/standard_headers.h"

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
  std::map<std::string, std::string> lowered;  // C++ entries that were asked for, to their names in the cubin
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

// What a compiler is given.
struct CompileJob {
  std::string source;
  std::string name;                          // of the source in messages: its path in the bundle
  std::vector<std::string> options;          // the include folders among them
  std::vector<std::string> entries;          // C++ names to instantiate
  std::vector<StandardHeader> headers = {};  // in memory, for NVRTC
};

// `nvcc -cubin` in `folder`, which has the source's files. Everything nvcc starts stays in the caller's process group,
// so that who kills the caller's group leaves no cicc behind.
Compilation CompileWithNvcc(const std::string& nvcc, const CompileJob& job, const std::string& folder,
                            absl::Duration timeout);

// The same for PTX, by the ptxas that comes with nvcc.
Compilation AssemblePtx(const std::string& nvcc, const CompileJob& job, const std::string& folder,
                        absl::Duration timeout);

}  // namespace pawl
