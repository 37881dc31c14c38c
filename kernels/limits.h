// What a bundle may have at most. docs/kernel-toml.md lists these numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl {

inline constexpr size_t kMaxSourceBytes = 1 << 20;  // of each file of a bundle
inline constexpr size_t kMaxTextBytes = 4000;       // of a text in kernel.toml
inline constexpr size_t kMaxListEntries = 1000;     // of a list, such as the values of a variable
inline constexpr size_t kMaxTables = 256;           // [[size]], [[tensor]], [[variable]], [[launch]], ... of each kind
inline constexpr size_t kMaxBundleName = 64;
inline constexpr size_t kMaxSizeName = 64;
inline constexpr size_t kMaxPath = 256;     // of a source, below the bundle's folder
inline constexpr size_t kMaxRank = 8;       // of a tensor
inline constexpr size_t kMaxExtents = 3;    // of a grid or a block
inline constexpr int32_t kMaxAlign = 4096;  // of a tensor's address, bytes
// Beyond any GPU's memory, and small enough that sums of tensors don't overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
// Larger spaces are refused: they can't be listed in a sensible time.
inline constexpr int64_t kMaxSpace = 10'000'000;
// The same on every architecture since sm_30.
inline constexpr int32_t kMaxGridYZ = 65535;
inline constexpr int32_t kMaxBlockXY = 1024;
inline constexpr int32_t kMaxBlockZ = 64;

}  // namespace pawl
