#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace pawl {

struct SandboxOptions {
  std::vector<std::string> visible{};  // folders or files to show at their own path, read-only
  // Folders of the caller's own making to show at their own path (a real one), and to open to the sandbox with what is
  // in them.
  std::vector<std::string> writable{};
  std::string directory = "/tmp";  // where it stands
  // For what opens a GPU: shows the GPUs' device files and the driver's libraries, a /proc with its own processes,
  // the rest of which is read-only as is /sys, and a private /dev/shm.
  bool gpu = false;
  bool loopback = false;  // a loopback of its own that is up, for tools whose parts talk to each other
  // The one capability that may be kept, where the caller is root: to read the GPU's counters where the driver reserves
  // them to administrators.
  bool counters = false;
  bool executables = false;  // programs and libraries may be made in /tmp
  // Limits; 0: none. There is none on address space, of which a process that opens a GPU takes terabytes.
  uint64_t temporary_bytes = uint64_t{2} << 30;  // of /tmp, and of /dev/shm
  uint64_t file_bytes = uint64_t{1} << 30;       // of one file
  int processes = 256;                           // with their threads
  int cpu_seconds = 0;                           // of one process
};

// What holds beside the namespaces, which always do.
struct SandboxParts {
  bool user_namespace = false;
  unsigned user = 0;  // the private user it runs as; 0: the caller's
  int landlock = 0;   // version; 0: the kernel has none
  int processes = 0;  // the limit; 0: this kernel can't hold it here
};

// "a user of its own, Landlock 7, at most 256 processes".
std::string PartsText(const SandboxParts& parts);

// Moves this program into namespaces of its own: it sees, read-only, the system's programs, libraries and headers and
// what `visible` names; /tmp is private and empty; there is no /home, no network, no other process, no capability, and,
// unless it is for a GPU, no /proc. Works as root, who becomes a user that nobody else is (what is shown must be
// readable to everybody), and as any user where user namespaces are allowed.
//
// On success this returns in a new process (its descriptors are kept). The calling process stays behind only to end as
// the new one ends; killing it ends everything in the sandbox. Call it before any thread is started.
// FailedPrecondition: this machine does not allow it; the calling process is as it was.
absl::Status EnterSandbox(const SandboxOptions& options, SandboxParts* parts = nullptr);

}  // namespace pawl
