#pragma once

#include <chrono>
#include <memory>
#include <thread>

#include "grpcpp/server_builder.h"
#include "orchestrator/security/listening.h"

namespace pawl {

// Accepts the connections of the gRPC server in a thread of its own, from construction to destruction. gRPC's own
// listener stops for good the first time that the process may open no more files. This one closes new connections while
// nearly all files that the process may open are in use, so that the database and the dashboard still get theirs, and
// accepts again as soon as others have been closed.
class Acceptor {
 public:
  using Connections = grpc::experimental::ExternalConnectionAcceptor;
  Acceptor(std::unique_ptr<ListeningSockets> sockets, std::unique_ptr<Connections> connections);
  ~Acceptor();

 private:
  void Run();
  void AcceptOne(int listener);
  void NoteRefused();

  const std::unique_ptr<ListeningSockets> sockets_;
  const std::unique_ptr<Connections> connections_;
  const int stop_;  // an eventfd
  std::chrono::steady_clock::time_point next_warning_;
  int refused_ = 0;  // since the last warning
  std::thread thread_;
};

}  // namespace pawl
