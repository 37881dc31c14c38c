#pragma once

#include <string>
#include <vector>

#include "worker/sandbox/sandbox.h"

namespace pawl {

// What pawl-sandbox ends with when it could not run the program; its standard error says why.
constexpr int kSandboxFailed = 125;

// A program to be run by pawl-sandbox.
struct SandboxCommand {
  SandboxOptions options;
  std::vector<int> kept_fds{};      // beside 0, 1 and 2
  std::vector<std::string> argv{};  // of the program; empty: only say what holds
};

// The arguments of pawl-sandbox for it, and back. ReadSandboxCommand answers what is wrong with them, or nothing.
std::vector<std::string> SandboxArguments(const SandboxCommand& command);
std::string ReadSandboxCommand(const std::vector<std::string>& arguments, SandboxCommand* command);

}  // namespace pawl
