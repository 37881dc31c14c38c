#pragma once

#include <string>

#include "absl/status/status.h"
#include "orchestrator/http/exchange.h"
#include "orchestrator/security/access.h"

namespace pawl {

// What stands between a browser and the API. It holds for every request, before a body is read:
// - Host must be a name of loopback where the dashboard listens there (DNS rebinding);
// - what changes something needs the header X-Pawl, JSON, and a page of this very origin (request forgery);
// - the token must have the role that the API asks for. Thread-safe.
class HttpGuard {
 public:
  HttpGuard(bool loopback, Access access) : loopback_(loopback), access_(std::move(access)) {}

  // INVALID_ARGUMENT, UNAUTHENTICATED or PERMISSION_DENIED. The body of the request is not looked at.
  absl::Status Check(const HttpRequest& request) const;
  absl::Status May(const HttpRequest& request, Role role) const;

 private:
  const bool loopback_;
  const Access access_;
};

}  // namespace pawl
