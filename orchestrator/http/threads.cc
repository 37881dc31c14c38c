#include "orchestrator/http/threads.h"

namespace pawl {

HttpThreads::HttpThreads(int threads, int waiting) : waiting_(waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

HttpThreads::~HttpThreads() { shutdown(); }

void HttpThreads::enqueue(std::function<void()> connection) {
  absl::MutexLock lock(&mutex_);
  while (!ending_ && queue_.size() >= waiting_) changed_.Wait(&mutex_);
  queue_.push_back(std::move(connection));
  changed_.SignalAll();
}

bool HttpThreads::HasWaiting() const {
  absl::MutexLock lock(&mutex_);
  return !queue_.empty();
}

void HttpThreads::shutdown() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.SignalAll();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HttpThreads::Work() {
  while (true) {
    std::function<void()> connection;
    {
      absl::MutexLock lock(&mutex_);
      while (!ending_ && queue_.empty()) changed_.Wait(&mutex_);
      if (queue_.empty()) return;
      connection = std::move(queue_.front());
      queue_.pop_front();
      changed_.SignalAll();
    }
    connection();  // also closes it
  }
}

}  // namespace pawl
