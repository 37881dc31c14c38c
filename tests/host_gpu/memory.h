#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace host_gpu {

inline constexpr size_t kTotalBytes = size_t{24} << 20;

// What device memory is: host memory with pages around it that can't be touched. Not thread-safe.
class Memory {
 public:
  // 0: there is not so much.
  uint64_t Allocate(size_t bytes);
  bool Free(uint64_t address);
  // Whether all these bytes are of one allocation, or of one variable.
  bool Has(uint64_t address, size_t bytes) const;
  size_t free() const { return kTotalBytes - used_; }
  // Of a module.
  void AddVariable(uint64_t address, size_t bytes) { variables_[address] = bytes; }
  void RemoveVariable(uint64_t address) { variables_.erase(address); }
  // Of the host, that copies reach later.
  void Register(const void* data, size_t bytes) { registered_[reinterpret_cast<uint64_t>(data)] = bytes; }
  bool Unregister(const void* data) { return registered_.erase(reinterpret_cast<uint64_t>(data)) > 0; }
  bool IsRegistered(const void* data, size_t bytes) const;

 private:
  struct Mapping {
    void* base;
    size_t length, bytes;
  };
  std::map<uint64_t, Mapping> allocations_;
  std::map<uint64_t, size_t> variables_, registered_;
  size_t used_ = 0;
};

}  // namespace host_gpu
