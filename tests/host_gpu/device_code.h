// Makes C++ of CUDA's device code: stands in front of it where nvrtc.cc compiles it for the host.
#pragma once

#include <assert.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "image.h"

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __forceinline__
#undef __noinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
#define __constant__
// Their bytes come from the multiprocessor before a block, and go back there after it (blocks.cc).
#define __shared__ static thread_local
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __ldg(pointer) (*(pointer))

#define threadIdx host_gpu_here.thread
#define blockIdx host_gpu_here.block
#define blockDim host_gpu_here.block_dim
#define gridDim host_gpu_here.grid_dim
constexpr int warpSize = 32;

inline void __syncthreads() { host_gpu_block_barrier(); }
// Threads that left count as ones of which the predicate holds, and vice versa.
inline int __syncthreads_and(int predicate) {
  static bool all;
  all = true;
  host_gpu_block_barrier();
  if (!predicate) all = false;
  host_gpu_block_barrier();
  const bool result = all;
  host_gpu_block_barrier();
  return result;
}
inline int __syncthreads_or(int predicate) { return !__syncthreads_and(!predicate); }
inline void __syncwarp(unsigned mask = ~0u) { host_gpu_warp_barrier(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}
[[noreturn]] inline void __trap() { __builtin_trap(); }
inline unsigned __activemask() { return host_gpu_live_lanes(); }
inline long long clock64() { return static_cast<long long>(host_gpu_nanoseconds()); }
inline int clock() { return static_cast<int>(host_gpu_nanoseconds()); }

// Threads of a block take turns at barriers only.
template <typename T, typename V>
T host_gpu_exchange(T* at, V value) {
  const T before = *at;
  *at = value;
  return before;
}
template <typename T, typename V>
T atomicAdd(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(*at + static_cast<T>(value)));
}
template <typename T, typename V>
T atomicSub(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(*at - static_cast<T>(value)));
}
template <typename T, typename V>
T atomicMin(T* at, V value) {
  return host_gpu_exchange(at, std::min<T>(*at, value));
}
template <typename T, typename V>
T atomicMax(T* at, V value) {
  return host_gpu_exchange(at, std::max<T>(*at, value));
}
template <typename T, typename V>
T atomicAnd(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(*at & static_cast<T>(value)));
}
template <typename T, typename V>
T atomicOr(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(*at | static_cast<T>(value)));
}
template <typename T, typename V>
T atomicXor(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(*at ^ static_cast<T>(value)));
}
template <typename T, typename V>
T atomicExch(T* at, V value) {
  return host_gpu_exchange(at, static_cast<T>(value));
}
template <typename T, typename E, typename V>
T atomicCAS(T* at, E expected, V value) {
  return *at == static_cast<T>(expected) ? host_gpu_exchange(at, static_cast<T>(value)) : *at;
}
inline unsigned atomicInc(unsigned* at, unsigned most) { return host_gpu_exchange(at, *at >= most ? 0 : *at + 1); }

// The value that lane `from` of the warp gives.
template <typename T>
T host_gpu_shuffle(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t* const values = host_gpu_warp_values();
  memcpy(&values[host_gpu_lane()], &value, sizeof(T));
  host_gpu_warp_barrier(mask);
  T result;
  memcpy(static_cast<void*>(&result), &values[from % 32], sizeof(T));
  return result;
}
template <typename T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
  const unsigned own = host_gpu_lane();
  return host_gpu_shuffle(mask, value, own / width * width + static_cast<unsigned>(lane) % width);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
  const unsigned own = host_gpu_lane(), from = own ^ static_cast<unsigned>(bits);
  return host_gpu_shuffle(mask, value, from / width > own / width ? own : from);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned own = host_gpu_lane();
  return host_gpu_shuffle(mask, value, own % width + by < static_cast<unsigned>(width) ? own + by : own);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32) {
  const unsigned own = host_gpu_lane();
  return host_gpu_shuffle(mask, value, own % width >= by ? own - by : own);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  uint64_t* const values = host_gpu_warp_values();
  values[host_gpu_lane()] = predicate != 0;
  host_gpu_warp_barrier(mask);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask & host_gpu_live_lanes()) >> lane & 1) votes |= static_cast<unsigned>(values[lane] & 1) << lane;
  }
  return votes;
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

template <typename To, typename From>
To host_gpu_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}
inline unsigned __float_as_uint(float x) { return host_gpu_bits<unsigned>(x); }
inline int __float_as_int(float x) { return host_gpu_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return host_gpu_bits<float>(x); }
inline float __int_as_float(int x) { return host_gpu_bits<float>(x); }
inline long long __double_as_longlong(double x) { return host_gpu_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return host_gpu_bits<double>(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
using std::isfinite;
using std::isinf;
using std::isnan;

namespace host_gpu {

// Constants of the host can't be written: there are none.
template <typename T>
Variable VariableOf(const char* name, T& variable) {
  if (std::is_const_v<std::remove_all_extents_t<T>>) return {"", nullptr, 0};
  return {name, (void*)&variable, sizeof(variable)};
}

template <auto kFunction>
struct EntryOf;

template <typename... A, void (*kFunction)(A...)>
struct EntryOf<kFunction> {
  static constexpr size_t kSizes[sizeof...(A) + 1] = {sizeof(A)...};
  template <size_t... I>
  static void CallWith(void** arguments, std::index_sequence<I...>) {
    kFunction(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(arguments[I])...);
  }
  static void Call(void** arguments) { CallWith(arguments, std::index_sequence_for<A...>()); }
  static constexpr Entry Named(const char* name) { return {name, Call, kSizes, sizeof...(A)}; }
};

}  // namespace host_gpu
