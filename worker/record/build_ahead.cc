#include "worker/record/build_ahead.h"

#include <algorithm>

namespace pawl {

BuildAhead::BuildAhead(const std::vector<v1::Variant>& variants, Build build, int threads)
    : build_(std::move(build)), ahead_(2 * std::max(1, threads)), variants_(variants.begin(), variants.end()) {
  for (int i = 0; i < std::max(1, threads); ++i) threads_.emplace_back([this] { Work(); });
}

BuildAhead::~BuildAhead() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void BuildAhead::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Stays until the end, also when all is built: a builder process that this thread started would die with it.
    changed_.wait(lock, [&] { return stop_ || (to_build_ < variants_.size() && to_build_ < to_take_ + ahead_); });
    if (stop_) return;
    const size_t mine = to_build_++;
    const v1::Variant variant = variants_[mine];
    lock.unlock();
    absl::StatusOr<BuiltVariant> built = build_(variant);
    lock.lock();
    built_.emplace(mine, std::move(built));
    changed_.notify_all();
  }
}

void BuildAhead::Add(const std::vector<v1::Variant>& variants) {
  {
    std::lock_guard lock(mutex_);
    variants_.insert(variants_.end(), variants.begin(), variants.end());
  }
  changed_.notify_all();
}

absl::StatusOr<BuiltVariant> BuildAhead::Next() {
  std::unique_lock lock(mutex_);
  const size_t mine = to_take_++;
  changed_.notify_all();
  changed_.wait(lock, [&] { return built_.count(mine) > 0; });
  absl::StatusOr<BuiltVariant> taken = std::move(built_.at(mine));
  built_.erase(mine);
  return taken;
}

}  // namespace pawl
