// What a bundle may have at most. docs/kernel-toml.md lists these numbers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pawl {

inline constexpr size_t kMaxSourceBytes = 1 << 20;  // of each file of a bundle
inline constexpr size_t kMaxTextBytes = 4000;       // of a text in kernel.toml
inline constexpr size_t kMaxListEntries = 1000;     // of a list, such as the values of a variable
inline constexpr size_t kMaxTables = 256;           // [[size]], [[tensor]], [[variable]], ... of each kind
inline constexpr int64_t kMaxLaunches = 10'000;     // of a call, repetitions counted
inline constexpr size_t kMaxBundleName = 64;
inline constexpr size_t kMaxSizeName = 64;
inline constexpr size_t kMaxPath = 256;                    // of a source, below the bundle's folder
inline constexpr size_t kMaxEntry = 512;                   // of a C++ name, bytes
inline constexpr size_t kMaxWord = 64;                     // of a variable's value, bytes
inline constexpr size_t kMaxFiles = 256;                   // of `files`
inline constexpr size_t kMaxFilesBytes = size_t{2} << 20;  // of `files` together
inline constexpr size_t kMaxVisited = 20'000;              // folders and files that a pattern looks at
inline constexpr size_t kMaxCubinBytes = size_t{8} << 20;  // of a source that is a cubin
inline constexpr size_t kMaxDataBytes = size_t{16} << 20;  // of all data files together
inline constexpr size_t kMaxIncludes = 16;
inline constexpr size_t kMaxFields = 64;      // of a struct
inline constexpr int32_t kMaxCluster = 16;    // blocks; more than 8 needs a GPU that allows it
inline constexpr size_t kMaxRank = 8;         // of a tensor
inline constexpr size_t kMaxExtents = 3;      // of a grid or a block
inline constexpr int32_t kMaxAlign = 4096;    // of a tensor's address, bytes
inline constexpr int32_t kMaxPortfolio = 8;   // variants
inline constexpr int32_t kMaxPriority = 100;  // of a campaign, and its negative
inline constexpr double kGoalWeights = 1e-6;  // how far their sum may be from 1
// Beyond any GPU's memory, and small enough that sums of tensors don't overflow.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
// Larger spaces are refused: they can't be listed in a sensible time.
inline constexpr int64_t kMaxSpace = 10'000'000;
// The same on every architecture since sm_30.
inline constexpr int32_t kMaxGridYZ = 65535;
inline constexpr int32_t kMaxBlockXY = 1024;
inline constexpr int32_t kMaxBlockZ = 64;

}  // namespace pawl
