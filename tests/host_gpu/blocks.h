#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "tests/host_gpu/image.h"

namespace host_gpu {

inline constexpr int kMultiprocessors = 1, kThreadsPerMultiprocessor = 1024, kMaxBlocks = 16, kMaxThreads = 1024;
inline constexpr size_t kSharedPerMultiprocessor = 17 << 10, kSharedPerBlock = 16 << 10;

enum class Fault { kNone, kIllegalAddress, kMisaligned, kDeadlock };

// What a grid did.
struct Steps {
  uint64_t blocks = 0;  // basic blocks that were run
  uint64_t waits = 0;   // of threads at barriers
};

// Calls an entry for each thread of a grid. Blocks run one after another, in any order; the threads of a block in turn,
// until each meets a barrier. The library has the entry, and its __shared__ variables.
Fault RunGrid(const Entry& entry, void** arguments, const Extent& grid, const Extent& block, size_t shared_bytes,
              void* library, Steps* steps);

// Of the last fault: which kernel, and where.
const char* FaultText();

std::mt19937_64& Chance();

}  // namespace host_gpu
