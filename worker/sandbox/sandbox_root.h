#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace pawl {

// Makes a new root for this process, which must be alone in its mount and pid namespaces and may mount: what the
// options show and nothing else. Its /tmp is the user's and writable folders the group's, unless these are 0.
absl::Status ChangeRoot(const SandboxOptions& options, uid_t user, gid_t group);

// The GPUs' device files.
std::vector<std::string> GpuDevices();

}  // namespace pawl
