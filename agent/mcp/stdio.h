#pragma once

#include <functional>

#include "absl/status/status.h"
#include "agent/mcp/server.h"

namespace pawl {

struct McpStdioOptions {
  int in = 0;  // descriptors; messages are lines
  int out = 1;
  McpCaller caller = {};
  int threads = 16;                         // requests that run at a time
  int waiting = 64;                         // and that wait for one of them; more are refused
  std::function<bool()> stopped = nullptr;  // asked every half second; null: never
};

// Serves one client until it closes `in`: what it asked before is answered, but for calls that take long, which are
// cancelled. Where it no longer takes what is written to `out`, or once it is stopped, everything is cancelled. Both
// eras may come through the same pipe. An error: `in` can't be read, or no thread can be started.
absl::Status ServeMcpStdio(const McpServer& server, const McpStdioOptions& options);

}  // namespace pawl
