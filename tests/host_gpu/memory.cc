#include "tests/host_gpu/memory.h"

#include <sys/mman.h>

#include <cstring>

namespace host_gpu {
namespace {

constexpr size_t kPage = 4096, kAlign = 256;  // of every allocation, and no more

bool HasRange(const std::map<uint64_t, size_t>& ranges, uint64_t address, size_t bytes) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return false;
  --after;
  return address + bytes <= after->first + after->second;
}

}  // namespace

uint64_t Memory::Allocate(size_t bytes) {
  if (bytes > free()) return 0;
  const size_t length = (bytes + kAlign + kPage - 1) / kPage * kPage + 2 * kPage;
  void* const base = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return 0;
  char* const first = static_cast<char*>(base) + kPage;
  mprotect(base, kPage, PROT_NONE);
  mprotect(static_cast<char*>(base) + length - kPage, kPage, PROT_NONE);
  const uint64_t address = reinterpret_cast<uint64_t>(first) + kAlign;
  memset(first + kAlign, 0xc3, bytes);  // what somebody left
  allocations_[address] = {base, length, bytes};
  used_ += bytes;
  return address;
}

bool Memory::Free(uint64_t address) {
  const auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  munmap(found->second.base, found->second.length);
  used_ -= found->second.bytes;
  allocations_.erase(found);
  return true;
}

bool Memory::Has(uint64_t address, size_t bytes) const {
  auto after = allocations_.upper_bound(address);
  if (after != allocations_.begin()) {
    --after;
    if (address + bytes <= after->first + after->second.bytes) return true;
  }
  return HasRange(variables_, address, bytes);
}

bool Memory::IsRegistered(const void* data, size_t bytes) const {
  return HasRange(registered_, reinterpret_cast<uint64_t>(data), bytes);
}

}  // namespace host_gpu
