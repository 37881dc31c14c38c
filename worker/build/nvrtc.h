#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/build/compilation.h"

namespace pawl {

// NVRTC, loaded at run time. Owns the library. One thread at a time.
class Nvrtc {
 public:
  // Unavailable: the library can't be loaded, or lacks a function.
  static absl::StatusOr<std::unique_ptr<Nvrtc>> Load(const std::string& library);
  ~Nvrtc();

  std::string version() const;  // "13.0"
  Compilation Compile(const CompileJob& job) const;

 private:
  struct Functions;
  Nvrtc();

  void* library_ = nullptr;
  std::unique_ptr<Functions> functions_;
};

}  // namespace pawl
