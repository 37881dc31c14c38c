#pragma once

#include <string>

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

}  // namespace pawl
