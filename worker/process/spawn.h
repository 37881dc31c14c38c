#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace pawl {

struct SpawnOptions {
  std::vector<std::string> argv;           // argv[0] is looked up on PATH unless it has a slash
  std::map<std::string, std::string> env;  // added to the caller's
  bool clear_env = false;                  // the child sees `env` only
  std::string directory;                   // empty: the caller's
  // {descriptor here, number in the child}. 0, 1 and 2 must be among them; every other descriptor is closed.
  std::vector<std::pair<int, int>> fds;
  bool own_group = true;  // false: stays in the caller's process group
};

// Starts a program without a shell; safe in a program with threads. The child is killed when the calling *thread* ends
// (that is what the kernel's PR_SET_PDEATHSIG means), so a child that is to live longer is started from a thread that
// does. The caller reaps it. NotFound: there is no such program.
absl::StatusOr<pid_t> Spawn(const SpawnOptions& options);

// How a process ended, from waitid().
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;  // not 0: it died of this
};

// "exited with code 3", "died of signal 9 (Killed)".
std::string EndText(const ProcessEnd& end);

// True once the child has ended; it stays a zombie, so its id and group stay reserved until Reap.
bool HasEnded(pid_t pid);

// Waits for the child's end and removes it.
ProcessEnd Reap(pid_t pid);

// Whether it is a child that Spawn started and Reap has not removed. A subreaper has others: those it adopted.
bool WasSpawned(pid_t pid);

// Readable once the process has ended; not valid on kernels without pidfd, where one polls HasEnded instead.
int OpenPidFd(pid_t pid);

// Finds one of Pawl's own programs: in PAWL_BIN_DIR, beside the running program, or in ../bin of it.
absl::StatusOr<std::string> FindPawlProgram(const std::string& name);

}  // namespace pawl
