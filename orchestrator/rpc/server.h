#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "db/store.h"
#include "orchestrator/core/orchestrator.h"
#include "orchestrator/security/listening.h"

namespace pawl {

struct ServerOptions {
  std::string listen;  // host:port (port 0: any free one) or unix:/path
  SecurityOptions security;
  std::string http;  // address of the dashboard, as ParseHttpAddress reads it; empty: none
  bool reflection = false;
  std::string profiles;  // folder with rules and gates instead of those that were built in; empty: none
  std::string reports;   // folder for a page of each campaign that ends; empty: none are written
  OrchestratorOptions orchestrator;
};

// The orchestrator with its services on a socket, and the thread that ticks it. The store must outlive it.
class Server {
 public:
  // INVALID_ARGUMENT: an address that is none, one that others can reach without TLS, files of keys or
  // tokens that are not right, or mistakes in the profiles.
  // UNAVAILABLE: it can't be listened on.
  static absl::StatusOr<std::unique_ptr<Server>> Start(Store& store, const ServerOptions& options);
  virtual ~Server() = default;

  virtual const std::string& address() const = 0;  // with the port that was chosen
  virtual std::string url() const = 0;             // of the dashboard; empty: there is none
  // No more leases and submissions; waits for those that are out, up to `patience` or until `forced` says so. Whatever
  // is still out then is adopted by the next start.
  virtual void Drain(absl::Duration patience, const std::function<bool()>& forced) = 0;
};

}  // namespace pawl
