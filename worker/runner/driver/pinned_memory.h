#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "worker/runner/driver/cuda_driver.h"

namespace pawl {

// Host memory that kernels can write to, and that copies reach at the bus's speed.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() {
    if (registered_) Cuda().MemHostUnregister(data_);
    if (data_ != nullptr) munmap(data_, bytes_);
  }

  absl::Status Reserve(size_t bytes) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return absl::ResourceExhaustedError(absl::StrCat("mmap: ", strerror(errno)));
    data_ = mapped;
    bytes_ = bytes;
    PAWL_CUDA(MemHostRegister(data_, bytes_, kHostRegisterPortable | kHostRegisterDeviceMap));
    registered_ = true;
    return absl::OkStatus();
  }
  // Null before Reserve, which is called once.
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  bool registered_ = false;
};

}  // namespace pawl
