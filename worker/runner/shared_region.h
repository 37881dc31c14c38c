#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace pawl {

// Host memory that the runner and the reference process share: a memfd their owner made and both inherited. Outputs
// travel through it; it is registered with CUDA, so that copies run at the bus's speed.
class SharedRegion {
 public:
  explicit SharedRegion(int fd) : fd_(fd) {}
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  ~SharedRegion();

  // Makes at least `bytes` usable. The writer grows the file; the reader finds it grown.
  absl::Status Reserve(size_t bytes);
  char* data() const { return data_; }

 private:
  void Unmap();

  int fd_;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace pawl
