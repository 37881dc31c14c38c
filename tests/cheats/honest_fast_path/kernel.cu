// Three paths: for multiples of four, for even numbers, and for all others. Each handles its own tail.
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

__device__ float Part(const float* row, int cols) {
  float sum = 0;
  if (cols % 4 == 0) {
    for (int c = 4 * threadIdx.x; c < cols; c += 4 * kBlock) {
      const float4 v = *(const float4*)(row + c);
      sum += (v.x + v.y) + (v.z + v.w);
    }
  } else if (cols % 2 == 0) {
    for (int c = 2 * threadIdx.x; c < cols; c += 2 * kBlock) {
      const float2 v = *(const float2*)(row + c);
      sum += v.x + v.y;
    }
  } else {
    for (int c = threadIdx.x; c < cols; c += kBlock) sum += row[c];
  }
  return sum;
}

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  const float sum = BlockSum(Part(x + (long long)blockIdx.x * cols, cols));
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
