#pragma once

#include <atomic>
#include <filesystem>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agent/mcp/server.h"
#include "worker/process/process.h"

namespace pawl {

// Serves MCP on a unix socket that only this user can reach, some connections at a time; more are closed at once, and
// so is one that no thread can be started for. Ends with its destructor; the server must outlive it.
class McpSocket {
 public:
  static absl::StatusOr<std::unique_ptr<McpSocket>> Open(const std::filesystem::path& path, const McpServer& server);
  ~McpSocket();

 private:
  McpSocket(Fd listening, const McpServer& server);
  // A connection and its thread, which is joined when this goes.
  struct Serving {
    ~Serving() {
      if (thread.joinable()) thread.join();
    }
    Fd connection;  // of the thread
    std::atomic<bool> ended = false;
    std::thread thread;
  };
  void Accept();
  void Begin(Fd connection, std::list<Serving>* serving);
  void Serve(Serving* serving);

  const Fd listening_;
  const McpServer& server_;
  std::atomic<bool> stopping_ = false;
  std::thread acceptor_;
};

// The other end: copies standard input to the socket and what comes from there to standard output, until either ends.
// An error: no server listens there.
absl::Status BridgeToSocket(const std::string& path);

}  // namespace pawl
