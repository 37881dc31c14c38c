#pragma once

#include <cuda_fp16.h>

namespace nn {

// kWidth elements that are loaded and stored at once. Addresses must be multiples of its size.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Vector {
  T elements[kWidth];

  static __device__ __forceinline__ Vector Load(const T* from) { return *reinterpret_cast<const Vector*>(from); }
  __device__ __forceinline__ void Store(T* to) const { *reinterpret_cast<Vector*>(to) = *this; }
  __device__ __forceinline__ T& operator[](int i) { return elements[i]; }
  __device__ __forceinline__ const T& operator[](int i) const { return elements[i]; }
};

__device__ __forceinline__ float ToFloat(float value) { return value; }
__device__ __forceinline__ float ToFloat(__half value) { return __half2float(value); }

template <typename T>
__device__ __forceinline__ T FromFloat(float value);
template <>
__device__ __forceinline__ float FromFloat<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __half FromFloat<__half>(float value) {
  return __float2half(value);
}

}  // namespace nn
