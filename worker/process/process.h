// What starting, waiting for and ending processes share: descriptors, pipes, cancellation.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/sync/steady_time.h"

namespace pawl {

// Owns a file descriptor and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  void Reset(int fd = -1);

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
};

// Both ends close on exec.
absl::StatusOr<Pipe> MakePipe();

// write() that reports a reader that is gone as EPIPE only: SIGPIPE is neither raised nor left pending. A library may
// not change the program's signal handling instead.
ssize_t QuietWrite(int fd, const void* data, size_t size);

void SetNonBlocking(int fd);

// What poll() takes for "until the deadline": 0 when it is past, -1 for an infinite one. Rounded up, so that a loop
// does not spin through the last millisecond. Deadlines of processes are times of SteadyNow().
int PollTimeout(SteadyTime deadline);

// Kills every child of this process, with the process group of each that leads one. For a program that must end at
// once: nobody waits for them.
void KillChildren();

// Whether nobody wants any more what a process is waited for; null: it is always wanted. Asked by the thread that
// waits, every kStopLook; the process is then killed, and the wait ends with CANCELLED.
using Stopped = std::function<bool()>;

inline constexpr absl::Duration kStopLook = absl::Milliseconds(100);

}  // namespace pawl
