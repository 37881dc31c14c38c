#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace pawl {

// Replaces this process's root by one that contains only what the options name. The process must be the only one in its
// mount and pid namespaces, and must be allowed to mount. /tmp of the new root belongs to `user`, and `group` may write
// to its writable folders; 0: neither is changed.
absl::Status ChangeRoot(const SandboxOptions& options, uid_t user, gid_t group);

// The GPUs' device files.
std::vector<std::string> GpuDevices();

// Permanently restricts this process and its children by Landlock: they may read and execute what they see, write,
// create and remove only below `writable`, and signal no process outside. A second line of defence behind namespaces.
// Needs no_new_privs. Returns the version of Landlock in force; 0: the kernel has none, and nothing has changed.
int RestrictWrites(const std::vector<std::string>& writable);

}  // namespace pawl
