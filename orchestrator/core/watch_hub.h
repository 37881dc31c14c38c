#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// Somebody who follows a campaign. Called from any thread, never with the orchestrator's lock held.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void Wake() = 0;  // there are new events in the store
  virtual void Show(const v1::Progress& progress) = 0;
  virtual void Close() = 0;  // the orchestrator shuts down
};

// Tells those who follow a campaign that there is something to see. Thread-safe.
class WatchHub {
 public:
  void Add(int64_t campaign, std::weak_ptr<Watcher> watcher);
  void Wake(int64_t campaign);
  void Show(int64_t campaign, const v1::Progress& progress);
  void CloseAll();

 private:
  std::vector<std::shared_ptr<Watcher>> Of(int64_t campaign);

  absl::Mutex mutex_;
  std::map<int64_t, std::vector<std::weak_ptr<Watcher>>> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
