#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "worker/runner/driver/cuda_driver.h"
#include "worker/runner/driver/pinned_memory.h"

namespace pawl {

// What the runner and the reference process share: a memfd their owner made and both inherited. Outputs travel through
// it. The runner writes to the file and never maps it: a candidate can reach all memory of its process that the GPU can
// address, but no file. The reference process maps it and registers it with CUDA, so that copies run at the bus's
// speed.
class SharedRegion {
 public:
  explicit SharedRegion(int fd) : fd_(fd) {}
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;
  ~SharedRegion();

  // Copies device memory to this place of the file.
  absl::Status Write(size_t offset, CUdeviceptr from, size_t bytes);
  // The same of pieces, one after another; together at most as large as kBounceBytes.
  struct Piece {
    CUdeviceptr from;
    size_t bytes;
  };
  static constexpr size_t kBounceBytes = size_t{8} << 20;
  absl::Status WritePieces(size_t offset, const std::vector<Piece>& pieces, CUstream stream);

  // Maps at least `bytes` of the file.
  absl::Status Reserve(size_t bytes);
  char* data() const { return data_; }
  int fd() const { return fd_; }

 private:
  void Unmap();
  // What lies in bounce_, and clears it: the GPU can reach it, and the next side shall find nothing of this one.
  absl::Status Store(size_t offset, size_t bytes);

  int fd_;
  char* data_ = nullptr;
  size_t bytes_ = 0;
  // Between device and file. Kernels could write to it, but none runs from a copy's beginning to its end.
  PinnedMemory bounce_;
};

}  // namespace pawl
