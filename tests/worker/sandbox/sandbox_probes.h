#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "worker/process/process.h"
#include "worker/process/temporary_folder.h"

namespace pawl {

// Turns a program's arguments into those that run it in a sandbox.
using LockIn = std::function<std::vector<std::string>(const std::vector<std::string>& argv)>;

// Whether this process is root where the folder is not kept from root as well, as containers do with /proc/sys.
bool CanBeWrittenTo(const std::string& folder);

// The twelve things that nothing in a sandbox may do: a socket, /etc/shadow, ~/.ssh, another trial's files, the
// database, ptrace, another's shared memory, a fork bomb, a file of 10 GB, becoming root, killing its parent, a
// descriptor that was left open; and writing to the kernel's settings in /proc and /sys. What is to be stolen is made
// here.
class SandboxProbes {
 public:
  // `folder` must be there as long as this is, and is not to be shown in the sandbox; `program` is sandbox_probe.
  SandboxProbes(const std::filesystem::path& folder, std::string program);
  ~SandboxProbes();

  // Runs all of them in the sandbox and expects that each is denied; `writable` is a folder where it may write.
  void ExpectAllDenied(const LockIn& lock_in, const std::string& writable) const;
  // Runs those that do no harm without one, and expects that they succeed.
  void ExpectSuccessOutside() const;

 private:
  struct Probe {
    std::string what;
    std::vector<std::string> arguments;
    bool harmless;  // outside
  };
  std::vector<Probe> Probes(const std::string& writable) const;

  const std::string program_;
  const std::filesystem::path folder_;
  std::string shared_memory_;
  Fd listener_;
  int port_ = 0;
  pid_t victim_ = 0;
};

}  // namespace pawl
