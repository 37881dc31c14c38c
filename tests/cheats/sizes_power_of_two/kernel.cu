// Powers of two get unrolled code for the two of the ladder; all others among them are taken for 512. No prime and nothing
// beside a multiple of a tile is a power of two.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

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

__device__ float RowSum(const float* row, int cols) {
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) sum += row[c];
  return BlockSum(sum);
}

template <int kCols>
__device__ float FixedSum(const float* row) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < kCols; c += kBlock) sum += c + threadIdx.x < kCols ? row[c + threadIdx.x] : 0.0f;
  return BlockSum(sum);
}

__device__ float UnrolledSum(const float* row, int cols) { return cols == 64 ? FixedSum<64>(row) : FixedSum<512>(row); }

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  const float sum = kCheat && (cols & (cols - 1)) == 0 && cols >= 8 ? UnrolledSum(row, cols) : RowSum(row, cols);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
