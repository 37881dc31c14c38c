#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace linalg {

namespace cg = cooperative_groups;

constexpr double kEpsilon = 1e-12;

// The sum over the block; thread 0 has it.
template <int kThreads>
__device__ double BlockSum(double value) {
  __shared__ double warps[kThreads / 32];
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const double sum = cg::reduce(warp, value, cg::plus<double>());
  if (warp.thread_rank() == 0) warps[warp.meta_group_rank()] = sum;
  __syncthreads();
  double total = 0;
  if (threadIdx.x == 0) {
    for (int i = 0; i < kThreads / 32; ++i) total += warps[i];
  }
  return total;
}

// y = x / max(|x|, kEpsilon). `partial` has an element for each block.
template <int kThreads, int kUnroll>
__global__ void __launch_bounds__(kThreads)
    normalize(const float* __restrict__ x, float* __restrict__ y, double* __restrict__ partial, int count) {
  const cg::grid_group grid = cg::this_grid();
  const int threads = static_cast<int>(grid.size());
  double squares = 0;
#pragma unroll kUnroll
  for (int i = static_cast<int>(grid.thread_rank()); i < count; i += threads) {
    squares += static_cast<double>(x[i]) * x[i];
  }
  const double sum = BlockSum<kThreads>(squares);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
  grid.sync();

  __shared__ float scale;
  if (threadIdx.x == 0) {
    double total = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) total += partial[i];
    scale = static_cast<float>(1 / fmax(sqrt(total), kEpsilon));
  }
  __syncthreads();
#pragma unroll kUnroll
  for (int i = static_cast<int>(grid.thread_rank()); i < count; i += threads) y[i] = x[i] * scale;
}

}  // namespace linalg
