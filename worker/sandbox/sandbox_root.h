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

// Lets this process and its children read and execute whatever they see, but write, create and remove only below
// `writable`, and signal no process outside; for ever. A second line of defence behind namespaces. Needs no_new_privs.
// Answers the version of the kernel's Landlock that holds; 0: the kernel has none, and nothing has changed.
int RestrictWrites(const std::vector<std::string>& writable);

}  // namespace pawl
