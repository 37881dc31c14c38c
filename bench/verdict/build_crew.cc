#include "bench/verdict/build_crew.h"

#include <utility>

namespace pawl {

BuildCrew::BuildCrew(int threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

BuildCrew::~BuildCrew() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  for (std::thread& thread : threads_) thread.join();
}

void BuildCrew::Run(std::vector<std::function<void()>> jobs) {
  absl::MutexLock lock(&mutex_);
  jobs_ = std::move(jobs);
  open_ = static_cast<int>(jobs_.size());
  const auto done = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return open_ == 0; };
  mutex_.Await(absl::Condition(&done));
}

void BuildCrew::Work() {
  const auto wanted = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ending_ || !jobs_.empty(); };
  absl::MutexLock lock(&mutex_);
  while (true) {
    mutex_.Await(absl::Condition(&wanted));
    if (ending_) return;
    const std::function<void()> job = std::move(jobs_.back());
    jobs_.pop_back();
    mutex_.Unlock();
    job();
    mutex_.Lock();
    --open_;
  }
}

}  // namespace pawl
