#pragma once

#include <string>
#include <vector>

namespace pawl {

// The first argument of the process that keeps an agent: `pawl keep-agent COMMAND...`, for `pawl agent` only.
inline constexpr char kKeepAgent[] = "keep-agent";

// Runs a command and holds on to everything that it starts, however it hides: what loses its parent becomes a child of
// this process. When the command ends, when descriptor 3 is closed at its other end (its driver is gone), or when there
// are too many processes, all that is left is killed. TERM is passed on to the command. Answers the command's exit
// code, 128 and the signal that it died of, or 125: too many processes.
int KeepAgent(const std::vector<std::string>& command);

}  // namespace pawl
