#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "fleet/decision.h"

namespace pawl {

struct ServiceAddress {
  std::string url;         // http://127.0.0.1:7466
  std::string token_file;  // with a token of the role read; empty: none
  std::string ca;          // PEM file of who signed the server's certificate; empty: the system's
  absl::Duration deadline = absl::Seconds(10);
};

// Asks the orchestrator behind a dashboard port for its queued trials and its workers. UNAVAILABLE: no answer;
// UNAUTHENTICATED: the token was refused. The token file is read for every call, so that a new token works at once.
absl::StatusOr<Demand> AskService(const ServiceAddress& address);
// Names of all workers that the orchestrator knows, lost ones included.
absl::StatusOr<std::vector<std::string>> AskForAllWorkers(const ServiceAddress& address);

}  // namespace pawl
