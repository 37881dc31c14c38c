#include "agent/mcp/sessions.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "base/hash/hash.h"

namespace pawl {
namespace {

constexpr size_t kMostSessions = 1000;
constexpr auto kSessionIdle = std::chrono::hours(1);

}  // namespace

std::string McpSessions::Add(const std::string& owner, std::shared_ptr<McpSession> session, Time now) {
  const std::string id = absl::BytesToHexString(RandomBytes(16));
  absl::MutexLock lock(&mutex_);
  Forget(now);
  sessions_[id] = {owner, std::move(session), now};
  return id;
}

std::shared_ptr<McpSession> McpSessions::Find(const std::string& id, const std::string& owner, Time now) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.owner != owner || now - found->second.used > kSessionIdle) {
    return nullptr;
  }
  found->second.used = now;
  return found->second.session;
}

bool McpSessions::End(const std::string& id, const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second.owner != owner) return false;
  found->second.session->CancelAll();
  sessions_.erase(found);
  return true;
}

void McpSessions::Forget(Time now) {
  std::erase_if(sessions_, [&](const auto& entry) { return now - entry.second.used > kSessionIdle; });
  if (sessions_.size() < kMostSessions) return;
  const auto oldest = std::min_element(sessions_.begin(), sessions_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  oldest->second.session->CancelAll();
  sessions_.erase(oldest);
}

}  // namespace pawl
