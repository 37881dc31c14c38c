// $NAME$: its sizes, its tensors, and the call that queues its launches. Written by Pawl.
$LIMITS$#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifndef $NAMESPACE$
#define $NAMESPACE$ pawl_$SPACE$
#endif

namespace $NAMESPACE$ {

using Sizes = std::vector<int32_t>;   // values of SizeNames()
using Tensors = std::vector<void*>;  // addresses, in the order of TensorInfos()

struct TensorInfo {
  const char* name;
  const char* type;  // f16, bf16, f32, f64, f8e4m3, f8e5m2, i8 ... u64, bool; i4 and u4 are packed two a byte
  int bits;
  const char* role;  // input, output, inout, scratch
  const char* fill;
  int align;  // bytes that the address is a multiple of
  bool exact;
  double absolute, relative;  // tolerance
};

inline double CeilDiv(double a, double b) { return std::ceil(a / b); }
inline double Min(std::initializer_list<double> values) { return std::min(values); }
inline double Max(std::initializer_list<double> values) { return std::max(values); }

inline int64_t Whole(double value, const char* text) {
  if (value == std::floor(value) && std::fabs(value) < 9.1e18) return static_cast<int64_t>(value);
  throw std::runtime_error(std::string(text) + " is " + std::to_string(value) + ", not a whole number");
}

inline uint32_t Extent(double value, const char* text) {
  const int64_t whole = Whole(value, text);
  if (whole >= 1 && whole <= std::numeric_limits<int32_t>::max()) return static_cast<uint32_t>(whole);
  throw std::runtime_error(std::string(text) + " is " + std::to_string(whole) + ": expected 1 to 2^31 - 1");
}

inline void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

// What the current GPU has.
inline double Limit(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  Check(cudaGetDevice(&device), "find the GPU");
  Check(cudaDeviceGetAttribute(&value, attribute, device), "ask the GPU");
  return value;
}

// The kernels of a cubin or a PTX file, in place of those that are compiled into this program.
class Library {
 public:
  static Library& Get() {
    static Library library;
    return library;
  }
  void Open(const std::string& file) {
    Check(cudaFree(nullptr), "open the GPU");
    cudaLibrary_t library;
    Check(cudaLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0), file.c_str());
    library_ = library;
    kernels_.clear();
  }
  bool open() const { return library_ != nullptr; }
  const void* Find(const char* symbol) {
    cudaKernel_t& kernel = kernels_[symbol];
    if (kernel == nullptr) Check(cudaLibraryGetKernel(&kernel, library_, symbol), symbol);
    return reinterpret_cast<const void*>(kernel);
  }
  void* FindVariable(const char* symbol, size_t* bytes) {
    void* address = nullptr;
    Check(cudaLibraryGetGlobal(&address, bytes, library_, symbol), symbol);
    return address;
  }

 private:
  cudaLibrary_t library_ = nullptr;
  std::map<std::string, cudaKernel_t> kernels_;
};

struct Geometry {
  dim3 grid, block;
  size_t shared = 0;  // dynamic, bytes
  dim3 cluster = {0, 0, 0};
  bool cooperative = false;
};

// Before the launches of an entry: allows what it needs beyond a kernel's usual share.
inline void Allow(const void* entry, const char* name, const Geometry& geometry) {
  if (geometry.shared > 48 * 1024) {
    Check(cudaFuncSetAttribute(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(geometry.shared)), name);
  }
  if (geometry.cluster.x * geometry.cluster.y * geometry.cluster.z > 8) {
    Check(cudaFuncSetAttribute(entry, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), name);
  }
}

inline void Run(const void* entry, const char* name, const Geometry& geometry, void** arguments, cudaStream_t stream) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = geometry.grid;
  config.blockDim = geometry.block;
  config.dynamicSmemBytes = geometry.shared;
  config.stream = stream;
  config.attrs = attributes;
  if (geometry.cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  if (geometry.cluster.x != 0) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim.x = geometry.cluster.x;
    attributes[config.numAttrs].val.clusterDim.y = geometry.cluster.y;
    attributes[config.numAttrs++].val.clusterDim.z = geometry.cluster.z;
  }
  Check(cudaLaunchKernelExC(&config, entry, arguments), name);
}

// A struct in the GPU's memory, for the launches that are queued while this lives.
class InMemory {
 public:
  InMemory(const void* content, size_t bytes, cudaStream_t stream) : stream_(stream) {
    Check(cudaMallocAsync(&address, bytes, stream), "allocate a struct");
    Check(cudaMemcpyAsync(address, content, bytes, cudaMemcpyHostToDevice, stream), "copy a struct");
  }
  ~InMemory() { cudaFreeAsync(address, stream_); }
  InMemory(const InMemory&) = delete;

  void* address = nullptr;

 private:
  cudaStream_t stream_;
};

// Gives a variable of the device code the content of a tensor.
inline void FillVariable(const char* name, void* variable, size_t bytes, const void* tensor, int64_t tensor_bytes,
                         cudaStream_t stream) {
  if (static_cast<int64_t>(bytes) != tensor_bytes) {
    throw std::runtime_error(std::string(name) + " has " + std::to_string(bytes) + " bytes, its tensor " +
                             std::to_string(tensor_bytes));
  }
  Check(cudaMemcpyAsync(variable, tensor, bytes, cudaMemcpyDeviceToDevice, stream), name);
}

inline int64_t BytesOf(const TensorInfo& tensor, const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return (elements * tensor.bits + 7) / 8;
}

$TABLES$
// Queues all launches of a call. Launches may exchange tensors: afterwards each address is that of the buffer which the
// tensor's name means. A std::runtime_error says what went wrong.
void Launch(const Sizes& sizes, Tensors& tensors, cudaStream_t stream);
$DECLARATIONS$
}  // namespace $NAMESPACE$
