#pragma once

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "worker/runner/driver/cuda_driver.h"

namespace pawl {

// Owns device memory that grows and is reused between requests. Growing loses the content.
class DeviceBuffer {
 public:
  // The address is a multiple of `align`, a power of two; without it, of 256, and the allocation has the exact size.
  explicit DeviceBuffer(size_t align = 1) : align_(align) {}
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { Release(); }

  absl::Status Reserve(size_t bytes) {
    if (bytes <= bytes_) return absl::OkStatus();
    Release();
    if (CUresult result = Cuda().MemAlloc(&address_, bytes + align_ - 1)) {
      address_ = 0;
      return CudaStatus(result, absl::StrCat("MemAlloc of ", bytes >> 20, " MiB").c_str());
    }
    bytes_ = bytes;
    return absl::OkStatus();
  }

  CUdeviceptr address() const { return (address_ + align_ - 1) / align_ * align_; }
  size_t bytes() const { return bytes_; }

 private:
  void Release() {
    if (address_ != 0) Cuda().MemFree(address_);
    address_ = 0;
    bytes_ = 0;
  }

  const size_t align_;
  CUdeviceptr address_ = 0;  // of the allocation
  size_t bytes_ = 0;
};

}  // namespace pawl
