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

// Asks an orchestrator's dashboard port what it needs. UNAVAILABLE: it does not answer; UNAUTHENTICATED: not with this
// token. The token is read each time, so that a new one counts at once.
absl::StatusOr<Demand> AskService(const ServiceAddress& address);
// Names of all workers that it knows, with those that are gone.
absl::StatusOr<std::vector<std::string>> AskForAllWorkers(const ServiceAddress& address);

}  // namespace pawl
