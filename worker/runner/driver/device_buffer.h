#pragma once

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "worker/runner/driver/cuda_driver.h"

namespace pawl {

// Owns device memory that grows and is reused between requests. Growing loses the content.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer() { Release(); }

  absl::Status Reserve(size_t bytes) {
    if (bytes <= bytes_) return absl::OkStatus();
    Release();
    if (CUresult result = Cuda().MemAlloc(&address_, bytes)) {
      address_ = 0;
      return CudaStatus(result, absl::StrCat("MemAlloc of ", bytes >> 20, " MiB").c_str());
    }
    bytes_ = bytes;
    return absl::OkStatus();
  }

  CUdeviceptr address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  void Release() {
    if (address_ != 0) Cuda().MemFree(address_);
    address_ = 0;
    bytes_ = 0;
  }

  CUdeviceptr address_ = 0;
  size_t bytes_ = 0;
};

}  // namespace pawl
