#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace host_gpu {

// Does the work, and says how many microseconds of the GPU's time it takes.
using Work = std::function<double()>;

// Work that was queued and begins when somebody waits for it, not before: what relies on it without waiting finds that
// it was not done. Times are those of a GPU that begins then, in microseconds of the host's steady clock: however long
// the host took to queue it, a stream's work takes as long as `Work` says, and waiting for it takes so long.
class Stream {
 public:
  void Queue(Work work);
  // Does all of it, without waiting until it would be done.
  void Finish();
  // The same, and waits.
  void Wait();
  double end() const { return end_; }
  // Until EndCapture, work is noted only.
  void BeginCapture() { captured_ = std::make_shared<std::vector<Work>>(); }
  std::shared_ptr<std::vector<Work>> EndCapture() { return std::move(captured_); }
  bool capturing() const { return captured_ != nullptr; }

 private:
  struct Queued {
    double at;
    Work work;
  };
  std::deque<Queued> queue_;
  double end_ = 0;
  std::shared_ptr<std::vector<Work>> captured_;
};

double HostMicroseconds();

}  // namespace host_gpu
