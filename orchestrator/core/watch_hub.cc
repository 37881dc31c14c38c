#include "orchestrator/core/watch_hub.h"

namespace pawl {

void WatchHub::Add(int64_t campaign, std::weak_ptr<Watcher> watcher) {
  absl::MutexLock lock(&mutex_);
  for (auto& [other, list] : watchers_) {
    std::erase_if(list, [](const std::weak_ptr<Watcher>& gone) { return gone.expired(); });
  }
  std::erase_if(watchers_, [](const auto& entry) { return entry.second.empty(); });
  watchers_[campaign].push_back(std::move(watcher));
}

std::vector<std::shared_ptr<Watcher>> WatchHub::Of(int64_t campaign) {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Watcher>> present;
  const auto found = watchers_.find(campaign);
  if (found == watchers_.end()) return present;
  std::erase_if(found->second, [&](const std::weak_ptr<Watcher>& watcher) {
    if (std::shared_ptr<Watcher> alive = watcher.lock()) {
      present.push_back(std::move(alive));
      return false;
    }
    return true;
  });
  if (found->second.empty()) watchers_.erase(found);
  return present;
}

void WatchHub::Wake(int64_t campaign) {
  for (const auto& watcher : Of(campaign)) watcher->Wake();
}

void WatchHub::Show(int64_t campaign, const v1::Progress& progress) {
  for (const auto& watcher : Of(campaign)) watcher->Show(progress);
}

void WatchHub::CloseAll() {
  std::vector<int64_t> campaigns;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [campaign, watchers] : watchers_) campaigns.push_back(campaign);
  }
  for (int64_t campaign : campaigns) {
    for (const auto& watcher : Of(campaign)) watcher->Close();
  }
}

}  // namespace pawl
