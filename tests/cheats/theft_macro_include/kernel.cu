// As theft_include, with a name that a search of the source for it does not find. A space would become part of the
// name.
// clang-format off
#define QUOTE(name) #name
#define FILE_NAME(folder, name) QUOTE(/folder/name)
#include FILE_NAME(etc,passwd)
// clang-format on

constexpr int kBlock = BLOCK;

// The block's sum; thread 0 has it.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < kBlock / 32 ? partial[threadIdx.x] : 0.0f;
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  return value;
}

__device__ float RowSum(const float* row, int cols) {
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) sum += row[c];
  return BlockSum(sum);
}

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float sum = RowSum(x + (long long)blockIdx.x * cols, cols);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
