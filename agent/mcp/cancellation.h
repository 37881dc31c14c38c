#pragma once

#include <atomic>
#include <functional>
#include <utility>

namespace pawl {

// Set when the client no longer wants the answer. The code that computes it polls cancelled(). Thread-safe, unless it
// looks by itself.
class Cancellation {
 public:
  Cancellation() = default;
  // Looks by itself whether the client has left, each time that it is asked.
  explicit Cancellation(std::function<bool()> left) : left_(std::move(left)) {}

  void Cancel() { cancelled_ = true; }
  bool cancelled() const { return cancelled_ || (left_ != nullptr && left_()); }

 private:
  std::atomic<bool> cancelled_ = false;
  const std::function<bool()> left_;
};

}  // namespace pawl
