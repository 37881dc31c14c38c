#include <cuda_fp16.h>

#include "nn/block_sum.cuh"
#include "nn/vector.cuh"

namespace nn {

// One block a row. With kStaged the row is kept in shared memory as floats between the passes.
template <typename T, int kThreads, int kWidth, bool kStaged, cub::BlockReduceAlgorithm kReduction>
__global__ void __launch_bounds__(kThreads)
    layer_norm(const T* __restrict__ x, const T* __restrict__ gamma, const T* __restrict__ beta, T* __restrict__ y,
               int columns, float epsilon) {
  extern __shared__ float staged[];
  using Vec = Vector<T, kWidth>;
  const T* row = x + static_cast<size_t>(blockIdx.x) * columns;
  T* out = y + static_cast<size_t>(blockIdx.x) * columns;

  float sum = 0;
  for (int at = threadIdx.x * kWidth; at < columns; at += kThreads * kWidth) {
    const Vec values = Vec::Load(row + at);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float value = ToFloat(values[i]);
      sum += value;
      if constexpr (kStaged) staged[at + i] = value;
    }
  }
  const float mean = BlockSum<kThreads, kReduction>(sum) / columns;

  float squares = 0;
  for (int at = threadIdx.x * kWidth; at < columns; at += kThreads * kWidth) {
    if constexpr (kStaged) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares += (staged[at + i] - mean) * (staged[at + i] - mean);
    } else {
      const Vec values = Vec::Load(row + at);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const float off = ToFloat(values[i]) - mean;
        squares += off * off;
      }
    }
  }
  const float scale = rsqrtf(BlockSum<kThreads, kReduction>(squares) / columns + epsilon);

  for (int at = threadIdx.x * kWidth; at < columns; at += kThreads * kWidth) {
    const Vec weights = Vec::Load(gamma + at), offsets = Vec::Load(beta + at);
    Vec values = Vec::Load(row + at);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const float value = kStaged ? staged[at + i] : ToFloat(values[i]);
      values[i] = FromFloat<T>((value - mean) * scale * ToFloat(weights[i]) + ToFloat(offsets[i]));
    }
    values.Store(out + at);
  }
}

}  // namespace nn
