#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "worker/process/subprocess.h"

namespace pawl {

// One of the built programs.
std::string BuiltProgram(const std::string& name);

// Runs the built `pawl` as a user does, to its end. `env` is added to the environment.
ProcessResult Pawl(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& env = {});

// The same on a terminal of so many columns; `out` has what it shows, colours included.
ProcessResult PawlOnTerminal(const std::vector<std::string>& arguments, int columns,
                             const std::map<std::string, std::string>& env = {});

std::vector<std::string> Lines(const std::string& text);

// Started by the main thread of this process.
std::vector<pid_t> ChildrenOf(pid_t pid);

// A zombie is gone: in a container nobody may reap it.
bool IsGone(pid_t pid);
// Waits for it, ten seconds at most.
bool EndsSoon(pid_t pid);

}  // namespace pawl
