#pragma once

#include <string>

#include "absl/status/status.h"

namespace pawl {

// Copies standard input to a unix socket and what comes from there to standard output, until either ends. An error:
// nobody listens there.
absl::Status BridgeToSocket(const std::string& path);

}  // namespace pawl
