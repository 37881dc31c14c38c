#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/mcp/server.h"
#include "worker/process/process.h"

namespace pawl {

// Serves MCP on a unix socket that only this user can reach, some connections at a time. Ends with its destructor; the
// server must outlive it.
class McpSocket {
 public:
  static absl::StatusOr<std::unique_ptr<McpSocket>> Open(const std::filesystem::path& path, const McpServer& server);
  ~McpSocket();

 private:
  McpSocket(Fd listening, const McpServer& server);
  void Accept();
  void Serve(Fd connection);

  const Fd listening_;
  const McpServer& server_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> connections_ = 0;
  std::thread acceptor_;
};

// The other end: copies standard input to the socket and what comes from there to standard output, until either ends.
// An error: no server listens there.
absl::Status BridgeToSocket(const std::string& path);

}  // namespace pawl
