#include "tests/host_gpu/streams.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
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
  const double late = queue_.empty() ? 0 : HostMicroseconds() - queue_.front().at;
  while (!queue_.empty()) {
    const Queued next = std::move(queue_.front());
    queue_.pop_front();
    end_ = std::max(end_, next.at + late);
    end_ += next.work();
  }
}

// How much later than the GPU ends the host hears of it, as on a busy one.
double LateMicroseconds() {
  static const double late = [] {
    const char* const text = getenv("CUDA_HOST_GPU_LATE_US");  // a sandbox hands it on
    return text == nullptr ? 0 : atof(text);
  }();
  return late;
}

void Stream::Wait() {
  Finish();
  for (double left; (left = end_ + LateMicroseconds() - HostMicroseconds()) > 0;) {
    // A thread that sleeps wakes up late.
    if (left > 2000) std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int64_t>(left - 1000)));
  }
}

}  // namespace host_gpu
