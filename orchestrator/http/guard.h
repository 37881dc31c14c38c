#pragma once

#include <string>

#include "absl/status/status.h"
#include "orchestrator/http/exchange.h"
#include "orchestrator/security/access.h"

namespace pawl {

inline constexpr char kMcpPath[] = "/mcp";

// What stands between a browser and the API. It holds for every request, before a body is read:
// - Host must be a name of loopback where the dashboard listens there (DNS rebinding);
// - what changes something needs the header X-Pawl, JSON, and a page of this very origin (request forgery);
// - the token must have the role that the API asks for.
// Clients of MCP know no X-Pawl: for /mcp an Origin, where there is one, must be this very one, whatever the method,
// and the role is read; its tools ask for more themselves. Thread-safe.
class HttpGuard {
 public:
  HttpGuard(bool loopback, Access access) : loopback_(loopback), access_(std::move(access)) {}

  // INVALID_ARGUMENT, UNAUTHENTICATED or PERMISSION_DENIED. The body of the request is not looked at.
  absl::Status Check(const HttpRequest& request) const;
  absl::Status May(const HttpRequest& request, Role role) const;

 private:
  absl::Status CheckMcp(const HttpRequest& request) const;

  const bool loopback_;
  const Access access_;
};

}  // namespace pawl
