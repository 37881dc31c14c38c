#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "agent/mcp/cancellation.h"
#include "agent/mcp/json.h"

namespace pawl {

// What `initialize` established, until 2025-11-25, and the requests that are under way: of one stdio process, or of one
// session over HTTP. Thread-safe.
class McpSession {
 public:
  void Open(const std::string& version, const std::string& client);
  bool open() const;
  std::string client() const;

  // A request begins. Null: another one with this id is under way.
  std::shared_ptr<Cancellation> Begin(const Json& id);
  void End(const Json& id);
  // What is not under way is passed over.
  void Cancel(const Json& id);
  void CancelAll();

 private:
  mutable absl::Mutex mutex_;
  std::string version_ ABSL_GUARDED_BY(mutex_);
  std::string client_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<Cancellation>> under_way_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
