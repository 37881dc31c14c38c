#pragma once

#include <atomic>

namespace pawl {

// Whether nobody wants the answer any more. Whoever works on it looks from time to time. Thread-safe.
class Cancellation {
 public:
  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace pawl
