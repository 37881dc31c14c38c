#pragma once

#include <chrono>
#include <set>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"

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
  void ShutDown(int how) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  SteadyCondition none_;
  std::set<int> sockets_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pawl
