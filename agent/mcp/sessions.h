#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/mcp/session.h"

namespace pawl {

// Sessions over HTTP, by the id that their requests show. Each belongs to the caller that opened it: with another
// caller's credentials it is not found. One that was not used for an hour is forgotten, and the one that was not used
// for the longest makes room for the next. Thread-safe.
class McpSessions {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The id is random: nobody guesses it.
  std::string Add(const std::string& owner, std::shared_ptr<McpSession> session, Time now);
  // Null: there is none.
  std::shared_ptr<McpSession> Find(const std::string& id, const std::string& owner, Time now);
  // Its requests are cancelled. False: there is none.
  bool End(const std::string& id, const std::string& owner);

 private:
  struct Entry {
    std::string owner;
    std::shared_ptr<McpSession> session;
    Time used;
  };
  void Forget(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::map<std::string, Entry> sessions_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
