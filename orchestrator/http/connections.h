#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

namespace pawl {

// The sockets that are being served, so that nobody at the other end can hold up the end of the server. Thread-safe;
// does not own them.
class HttpConnections {
 public:
  // False: it is over, and the socket is not to be served.
  bool Add(int socket);
  // Before it is closed: its number may then be anybody's.
  void Remove(int socket);

  // Nothing more is read from any: who has not asked yet, or only listens, is done at once. Replies under way may be
  // taken for so long; then they are cut off. Returns when none is left, or when all were cut off.
  void End(std::chrono::milliseconds patience);

 private:
  void ShutDown(int how);

  std::mutex mutex_;
  std::condition_variable none_;
  std::set<int> sockets_;
  bool ended_ = false;
};

}  // namespace pawl
