// What the host GPU's two halves share: nvrtc.cc compiles device code for the host as well and appends the library to
// the cubin; the driver (driver.cc) loads it from there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace host_gpu {

struct Entry {
  const char* name;  // in the cubin
  void (*call)(void** arguments);
  const size_t* sizes;  // of the arguments
  size_t count;
};

struct Variable {
  const char* name;
  void* address;
  size_t bytes;
};

// What the library's function host_gpu_image returns.
struct Image {
  const Entry* entries;
  size_t entry_count;
  const Variable* variables;
  size_t variable_count;
};

// Stands behind the cubin, followed by so many bytes of the library.
struct Trailer {
  char magic[16];
  uint64_t bytes;
};
inline constexpr char kMagic[16] = "pawl host image";

// Of the thread that runs. Reads as uint3 and dim3.
struct Extent {
  unsigned x, y, z;
};
struct Here {
  Extent thread, block, block_dim, grid_dim;
};

}  // namespace host_gpu

extern "C" {
// The driver's, for device code.
extern host_gpu::Here host_gpu_here;
extern char host_gpu_dynamic_shared[];
void host_gpu_block_barrier();
void host_gpu_warp_barrier(unsigned mask);
// Of the warp: room for a value of each lane.
uint64_t* host_gpu_warp_values();
unsigned host_gpu_lane();
unsigned host_gpu_live_lanes();
uint64_t host_gpu_nanoseconds();
void __sanitizer_cov_trace_pc();
}
