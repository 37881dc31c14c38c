#include "tests/host_gpu/streams.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace host_gpu {

double HostMicroseconds() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Stream::Queue(Work work) {
  if (captured_ != nullptr) {
    captured_->push_back(std::move(work));
  } else {
    queue_.push_back({HostMicroseconds(), std::move(work)});
  }
}

void Stream::Finish() {
  while (!queue_.empty()) {
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    end_ = std::max(end_, next.at);
    end_ += next.work();
  }
}

void Stream::Wait() {
  Finish();
  for (double left; (left = end_ - HostMicroseconds()) > 0;) {
    if (left > 200) std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int64_t>(left - 100)));
  }
}

}  // namespace host_gpu
