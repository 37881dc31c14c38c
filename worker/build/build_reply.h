#pragma once

#include <memory>
#include <string>

#include "pawl/v1/builder.pb.h"
#include "worker/build/nvrtc.h"
#include "worker/host/toolkit.h"

namespace pawl {

// What a builder process compiles with.
struct Compilers {
  Toolkit toolkit;               // its header libraries among it
  std::unique_ptr<Nvrtc> nvrtc;  // none: `nvrtc_missing` says why
  std::string nvrtc_missing;
  bool sandboxed = false;
};

// Compiles one request and says what came of it: the cubin, or the candidate's failure with the compiler's first error,
// or what is wrong with this machine. Without a sandbox, a source that names files outside is refused unread.
v1::BuildReply MakeBuildReply(const v1::BuildRequest& request, const Compilers& compilers);

// The two outcomes that the owner of a builder process sees and the process itself does not live to tell.
v1::Failure BuildTimeout(const v1::BuildRequest& request, double seconds);
v1::Failure BuildFailure(v1::Check check, const std::string& message);

// True for a reply that says the compiler was killed or had no memory: another try, alone, may succeed.
bool IsOutOfMemory(const v1::BuildReply& reply);
std::string TooLargeText(const v1::BuildRequest& request);

}  // namespace pawl
