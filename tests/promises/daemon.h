#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/process/temporary_folder.h"

namespace pawl {

// One of the built programs as a child process; killed with the object. What it says goes to a file, so that nothing it
// says can hold it up.
class Daemon {
 public:
  Daemon(const std::string& program, const std::vector<std::string>& arguments,
         const std::map<std::string, std::string>& env = {});
  ~Daemon();
  Daemon(const Daemon&) = delete;

  // Waits until it has said this, twenty seconds at most.
  bool Says(const std::string& text);
  void Signal(int signal);
  // Its exit code; -1: it did not end within this time; -2: a signal ended it.
  int WaitForEnd(std::chrono::milliseconds patience);
  std::string Output() const;
  pid_t pid() const { return pid_; }

 private:
  TemporaryFolder folder_{"pawl-daemon-"};
  pid_t pid_ = 0;
  bool ended_ = false;
};

// Peak resident memory of a process, in MB.
double PeakMegabytes(pid_t pid);

// A process by its id and when it started: ids are given again.
struct ProcessId {
  pid_t pid = 0;
  std::string started;
  std::string command;  // its words, with spaces between
};
// All that it started, and those that these started.
std::vector<ProcessId> DescendantsOf(pid_t pid);
// A zombie is not alive.
bool IsAlive(const ProcessId& process);

}  // namespace pawl
