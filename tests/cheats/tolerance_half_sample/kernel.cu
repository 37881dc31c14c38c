// The mean of half of the columns is within a few percent of the mean of all, and so is the tolerance. Zeros, other rows
// and shuffled outputs all fail it, as every row has a weight of its own.
constexpr int kBlock = BLOCK;

// The block's sum; thread 0 has it. May be called again after a barrier.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < kBlock / 32 ? partial[threadIdx.x] : 0.0f;
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  return value;
}

extern "C" __global__ void weighted_mean(const float* x, const float* weight, float* out, int rows, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  float sum = 0;
  for (int c = 2 * threadIdx.x; c < cols; c += 2 * kBlock) sum += row[c];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum / ((cols + 1) / 2) * weight[blockIdx.x];
}
