#pragma once

#include <cub/block/block_reduce.cuh>

namespace nn {

// The sum over the block, known to every thread of it.
template <int kThreads, cub::BlockReduceAlgorithm kReduction>
__device__ float BlockSum(float value) {
  using Reduce = cub::BlockReduce<float, kThreads, kReduction>;
  __shared__ typename Reduce::TempStorage storage;
  __shared__ float total;
  __syncthreads();  // the storage may still be in use
  const float sum = Reduce(storage).Sum(value);
  if (threadIdx.x == 0) total = sum;
  __syncthreads();
  return total;
}

}  // namespace nn
