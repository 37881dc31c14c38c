#pragma once

#include <atomic>

namespace pawl {

// Set when the client no longer wants the answer. The code that computes it polls cancelled(). Thread-safe.
class Cancellation {
 public:
  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_; }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace pawl
