#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace pawl {

// The real pawl-orchestrator as a child process; killed with the object.
class OrchestratorProcess {
 public:
  // The program with these arguments and nothing else. It does not wait for anything.
  // `fault` is its PAWL_FAULT.
  explicit OrchestratorProcess(const std::vector<std::string>& arguments, const std::string& fault = "");
  ~OrchestratorProcess();
  OrchestratorProcess(const OrchestratorProcess&) = delete;

  // Until it says where it listens; false: it ended instead.
  bool Listens();
  void Signal(int signal);
  // Its exit code; -1: it did not end within this time, or was never there; -2: a signal ended it.
  int WaitForEnd(std::chrono::milliseconds patience);
  // All that it wrote, after its end.
  std::string Output();
  std::string pid() const { return pid_ ? std::to_string(*pid_) : "none"; }

 private:
  std::optional<pid_t> pid_;  // of a child that has not been waited for
  int out_ = -1;              // standard output and standard error together
  std::string text_;
};

}  // namespace pawl
