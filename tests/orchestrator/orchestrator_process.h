#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace pawl {

// The real pawl-orchestrator as a child process; killed with the object.
class OrchestratorProcess {
 public:
  // The program with these arguments and nothing else. It does not wait for anything.
  explicit OrchestratorProcess(const std::vector<std::string>& arguments);
  ~OrchestratorProcess();
  OrchestratorProcess(const OrchestratorProcess&) = delete;

  // Until it says where it listens; false: it ended instead.
  bool Listens();
  void Signal(int signal);
  // Its exit code; -1: it did not end within this time; -2: a signal ended it.
  int WaitForEnd(std::chrono::milliseconds patience);
  // All that it wrote, after its end.
  std::string Output();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int out_ = -1;  // standard output and standard error together
  bool ended_ = false;
  std::string text_;
};

}  // namespace pawl
