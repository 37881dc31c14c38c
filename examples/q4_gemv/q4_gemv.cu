// y = W x for the decode step of a language model: W is quantised to 4 bits in groups of 32 with one fp16 scale each.
//
// Weights of a row lie two a byte, the first in the low half, with an offset of 8: a weight is (q - 8) * scale. A warp
// computes a row; the blocks of a launch cover all rows.
#include <cuda_fp16.h>

#ifndef UNROLL
#define UNROLL 1
#endif

namespace quant {

constexpr int kGroup = 32;
constexpr int kWarp = 32;
constexpr int kOffset = 8;
constexpr int kUnroll = UNROLL;

template <int kWords>
struct alignas(4 * kWords) Packed {
  unsigned words[kWords];
};

__device__ __forceinline__ float DotWord(unsigned word, const __half* x) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum += static_cast<float>(static_cast<int>(word >> 4 * i & 0xf) - kOffset) * __half2float(x[i]);
  return sum;
}

__device__ __forceinline__ float WarpSum(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

// kWords words of eight weights are one load of a lane; they are of one group.
template <int kWords>
__global__ void gemv_q4(const unsigned char* __restrict__ weights, const __half* __restrict__ scales,
                        const __half* __restrict__ x, float* __restrict__ y, int rows, int cols) {
  const int row = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int lane = threadIdx.x % kWarp;
  const auto* packed = reinterpret_cast<const Packed<kWords>*>(weights + static_cast<size_t>(row) * cols / 2);
  const __half* row_scales = scales + static_cast<size_t>(row) * (cols / kGroup);
  const int loads = cols / (8 * kWords);
  float sum = 0;
#pragma unroll kUnroll
  for (int load = lane; load < loads; load += kWarp) {
    const Packed<kWords> part = packed[load];
    const int column = load * 8 * kWords;
    float dot = 0;
#pragma unroll
    for (int w = 0; w < kWords; ++w) dot += DotWord(part.words[w], x + column + 8 * w);
    sum += dot * __half2float(row_scales[column / kGroup]);
  }
  sum = WarpSum(sum);
  if (lane == 0) y[row] = sum;
}

}  // namespace quant
