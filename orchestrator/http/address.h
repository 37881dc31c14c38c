#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace pawl {

// Where the dashboard listens.
struct HttpAddress {
  std::string host;  // as a socket wants it: 127.0.0.1, ::1
  int port = 0;      // 0: any free one
  bool loopback = false;

  std::string Url(bool encrypted) const;
};

// "host:port", "[::1]:port", or a port alone, which is loopback's. INVALID_ARGUMENT: it is none of them.
absl::StatusOr<HttpAddress> ParseHttpAddress(const std::string& text);

// Whether a Host header, with or without a port, names this machine's loopback. Nobody else's name can be in it unless
// his page was loaded from there, as in DNS rebinding.
bool IsLoopbackHost(const std::string& host_header);

}  // namespace pawl
