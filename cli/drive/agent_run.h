#pragma once

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/status/statusor.h"
#include "agent/drive/ledger.h"
#include "cli/connect/connection.h"

namespace pawl {

struct AgentRunOptions {
  std::string campaign;
  std::string command;  // as AgentCommand has it
  int agents = 1;
  AgentLimits limits;
  std::string more_prompt;       // added to Pawl's
  std::filesystem::path folder;  // of this run; made if missing
  std::string version;
  bool json = false;
};

// Lets agents propose changes to a campaign until a limit is reached, the campaign has ended, or they have. Tells on
// standard error what came of each proposal, and at last on standard output why it stopped. Answers the exit code.
absl::StatusOr<int> RunAgents(Connection& connection, const AgentRunOptions& options);

}  // namespace pawl
