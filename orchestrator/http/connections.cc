#include "orchestrator/http/connections.h"

#include <sys/socket.h>

namespace pawl {

bool HttpConnections::Add(int socket) {
  absl::MutexLock lock(&mutex_);
  if (!ended_) sockets_.insert(socket);
  return !ended_;
}

void HttpConnections::Remove(int socket) {
  absl::MutexLock lock(&mutex_);
  sockets_.erase(socket);
  if (sockets_.empty()) none_.SignalAll();
}

void HttpConnections::End(std::chrono::milliseconds patience) {
  absl::MutexLock lock(&mutex_);
  ended_ = true;
  ShutDown(SHUT_RD);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (!sockets_.empty() && none_.WaitUntil(&mutex_, deadline)) {
  }
  ShutDown(SHUT_RDWR);
}

void HttpConnections::ShutDown(int how) {
  for (const int socket : sockets_) shutdown(socket, how);
}

}  // namespace pawl
