#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pawl {

struct SandboxOptions {
  std::vector<std::string> visible;  // folders or files to show at their own path; real paths
  uint64_t temporary_bytes = uint64_t{2} << 30;
};

// Moves this program into namespaces of its own: it sees, read-only, the system's programs, libraries and headers and
// what `visible` names; /tmp is private and empty; there is no /home, no /proc, no network, no other process, no
// capability. Works as any user where user namespaces are allowed, and as root where they are not.
//
// On success this returns in a new process (the standard descriptors are kept). The calling process stays behind only
// to end as the new one ends; killing it ends everything in the sandbox. Call it before any thread is started.
// FailedPrecondition: this machine does not allow it; the calling process is as it was.
absl::Status EnterSandbox(const SandboxOptions& options);

}  // namespace pawl
