#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "tests/host_gpu/image.h"

namespace host_gpu {

inline constexpr int kMultiprocessors = 2, kThreadsPerMultiprocessor = 1024, kMaxBlocks = 16, kMaxThreads = 1024;
inline constexpr size_t kSharedPerMultiprocessor = 48 << 10, kSharedPerBlock = 47 << 10;

enum class Fault { kNone, kIllegalAddress, kMisaligned, kDeadlock };

// Calls an entry for each thread of a grid. Blocks run one after another, in any order; the threads of a block in turn,
// until each meets a barrier. `tls_module` says where the library's __shared__ variables are. `steps`: of basic blocks
// that were run.
Fault RunGrid(const Entry& entry, void** arguments, const Extent& grid, const Extent& block, size_t shared_bytes,
              void* library, uint64_t* steps);

// Of the last fault: which kernel, and where.
const char* FaultText();

std::mt19937_64& Chance();

}  // namespace host_gpu
