#include "orchestrator/http/threads.h"

namespace pawl {

HttpThreads::HttpThreads(int threads, int waiting) : waiting_(waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

HttpThreads::~HttpThreads() { shutdown(); }

void HttpThreads::enqueue(std::function<void()> connection) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ending_ || queue_.size() < waiting_; });
  queue_.push_back(std::move(connection));
  changed_.notify_all();
}

void HttpThreads::shutdown() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void HttpThreads::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> connection = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    lock.unlock();
    connection();  // also closes it
    lock.lock();
  }
}

}  // namespace pawl
