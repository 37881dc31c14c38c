#include "orchestrator/http/connections.h"

#include <sys/socket.h>

namespace pawl {

bool HttpConnections::Add(int socket) {
  std::lock_guard lock(mutex_);
  if (!ended_) sockets_.insert(socket);
  return !ended_;
}

void HttpConnections::Remove(int socket) {
  std::lock_guard lock(mutex_);
  sockets_.erase(socket);
  if (sockets_.empty()) none_.notify_all();
}

void HttpConnections::End(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  ended_ = true;
  ShutDown(SHUT_RD);
  if (none_.wait_for(lock, patience, [this] { return sockets_.empty(); })) return;
  ShutDown(SHUT_RDWR);
}

void HttpConnections::ShutDown(int how) {
  for (const int socket : sockets_) shutdown(socket, how);
}

}  // namespace pawl
