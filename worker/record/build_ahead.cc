#include "worker/record/build_ahead.h"

#include <algorithm>

namespace pawl {

BuildAhead::BuildAhead(const std::vector<v1::Variant>& variants, Build build, int threads)
    : build_(std::move(build)), ahead_(2 * std::max(1, threads)), variants_(variants.begin(), variants.end()) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Work(); });
}

BuildAhead::~BuildAhead() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
}

std::optional<BuildAhead::Task> BuildAhead::NextToBuild() {
  absl::MutexLock lock(&mutex_);
  while (!stop_ && (to_build_ >= variants_.size() || to_build_ >= to_take_ + ahead_)) changed_.Wait(&mutex_);
  if (stop_) return std::nullopt;
  const size_t place = to_build_++;
  return Task{place, variants_[place]};
}

// Stays until the end, also when all is built: a builder process that this thread started would die with it.
void BuildAhead::Work() {
  while (const std::optional<Task> task = NextToBuild()) {
    absl::StatusOr<BuiltVariant> built = build_(task->variant);
    absl::MutexLock lock(&mutex_);
    built_.emplace(task->place, std::move(built));
    changed_.SignalAll();
  }
}

void BuildAhead::Add(const std::vector<v1::Variant>& variants) {
  absl::MutexLock lock(&mutex_);
  variants_.insert(variants_.end(), variants.begin(), variants.end());
  changed_.SignalAll();
}

absl::StatusOr<BuiltVariant> BuildAhead::Next() {
  absl::MutexLock lock(&mutex_);
  const size_t mine = to_take_++;
  changed_.SignalAll();
  while (!built_.contains(mine)) changed_.Wait(&mutex_);
  absl::StatusOr<BuiltVariant> taken = std::move(built_.at(mine));
  built_.erase(mine);
  return taken;
}

}  // namespace pawl
