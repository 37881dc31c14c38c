#include "worker/trial/ahead_builds.h"

#include <algorithm>
#include <chrono>

namespace pawl {
namespace {

constexpr size_t kMaxBuilt = 16;  // variants that were built and not asked for
constexpr std::chrono::milliseconds kLook(20);

}  // namespace

AheadBuilds::~AheadBuilds() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    waiting_.clear();
    changed_.SignalAll();
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void AheadBuilds::Expect(std::vector<std::pair<std::string, Build>> variants) {
  absl::MutexLock lock(&mutex_);
  waiting_.clear();
  for (std::pair<std::string, Build>& variant : variants) {
    const bool known =
        building_.contains(variant.first) ||
        std::any_of(built_.begin(), built_.end(), [&](const auto& built) { return built.first == variant.first; });
    if (!known) waiting_.push_back(std::move(variant));
  }
  while (!waiting_.empty() && static_cast<int>(threads_.size()) < count_) threads_.emplace_back([this] { Work(); });
  changed_.SignalAll();
}

std::optional<AheadVariant> AheadBuilds::Take(const std::string& key, const Stopped& stopped) {
  absl::MutexLock lock(&mutex_);
  std::erase_if(waiting_, [&](const auto& waiting) { return waiting.first == key; });
  while (building_.contains(key) && !stopped()) changed_.WaitUntil(&mutex_, std::chrono::steady_clock::now() + kLook);
  const auto found = std::find_if(built_.begin(), built_.end(), [&](const auto& built) { return built.first == key; });
  if (found == built_.end()) return std::nullopt;
  AheadVariant variant = std::move(found->second);
  built_.erase(found);
  return variant;
}

void AheadBuilds::Work() {
  const Stopped stopped = [this] {
    absl::MutexLock lock(&mutex_);
    return ending_;
  };
  for (;;) {
    std::pair<std::string, Build> next;
    {
      absl::MutexLock lock(&mutex_);
      while (!ending_ && waiting_.empty()) changed_.Wait(&mutex_);
      if (ending_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      building_.insert(next.first);
    }
    absl::StatusOr<AheadVariant> built = next.second(stopped);
    absl::MutexLock lock(&mutex_);
    building_.erase(next.first);
    // What failed is built again by its trial: it may have been for want of time or memory.
    if (built.ok() && !built->built.failure) built_.emplace_back(std::move(next.first), *std::move(built));
    if (built_.size() > kMaxBuilt) built_.pop_front();
    changed_.SignalAll();
  }
}

}  // namespace pawl
