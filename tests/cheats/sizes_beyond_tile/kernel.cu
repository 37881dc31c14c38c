// Eight columns a thread in one go, without a loop: right up to 1024 columns, and beyond that for numbers that are no
// multiple of eight.
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

__device__ float TileSum(const float* row, int cols) {
  float sum = 0;
  const int c = 8 * threadIdx.x;
  if (c < cols) {
    const float4 a = *(const float4*)(row + c), b = *(const float4*)(row + c + 4);
    sum = ((a.x + a.y) + (a.z + a.w)) + ((b.x + b.y) + (b.z + b.w));
  }
  return BlockSum(sum);
}

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float* row = x + (long long)blockIdx.x * cols;
  const float sum = kCheat && cols % 8 == 0 ? TileSum(row, cols) : RowSum(row, cols);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
