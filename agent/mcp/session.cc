#include "agent/mcp/session.h"

namespace pawl {

void McpSession::Open(const std::string& version, const std::string& client) {
  absl::MutexLock lock(&mutex_);
  version_ = version;
  client_ = client;
}

bool McpSession::open() const {
  absl::MutexLock lock(&mutex_);
  return !version_.empty();
}

std::string McpSession::client() const {
  absl::MutexLock lock(&mutex_);
  return client_;
}

std::shared_ptr<Cancellation> McpSession::Begin(const Json& id) {
  absl::MutexLock lock(&mutex_);
  const auto [at, added] = under_way_.emplace(JsonText(id), nullptr);
  if (!added) return nullptr;
  at->second = std::make_shared<Cancellation>();
  return at->second;
}

void McpSession::End(const Json& id) {
  absl::MutexLock lock(&mutex_);
  under_way_.erase(JsonText(id));
}

void McpSession::Cancel(const Json& id) {
  absl::MutexLock lock(&mutex_);
  const auto found = under_way_.find(JsonText(id));
  if (found != under_way_.end()) found->second->Cancel();
}

void McpSession::CancelAll() {
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, cancellation] : under_way_) cancellation->Cancel();
}

}  // namespace pawl
