#pragma once

#include <httplib.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pawl {

// So many threads for connections, and room for as many that wait; who comes then waits to be accepted. Thread-safe.
class HttpThreads final : public httplib::TaskQueue {
 public:
  HttpThreads(int threads, int waiting);
  ~HttpThreads() override;

  void enqueue(std::function<void()> connection) override;
  void shutdown() override;

 private:
  void Work();

  const size_t waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pawl
