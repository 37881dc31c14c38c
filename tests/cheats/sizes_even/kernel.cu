// An even number of columns allows loads of eight bytes. Four columns a thread are right at the ladder's sizes and at all
// that are odd; of any other even size the last two columns are lost.
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

__device__ float PairedSum(const float* row, int cols) {
  float sum = 0;
  for (int c = 4 * threadIdx.x; c + 3 < cols; c += 4 * kBlock) {
    const float2 a = *(const float2*)(row + c), b = *(const float2*)(row + c + 2);
    sum += (a.x + a.y) + (b.x + b.y);
  }
  return BlockSum(sum);
}

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  const float sum = kCheat && cols % 2 == 0 ? PairedSum(row, cols) : RowSum(row, cols);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
