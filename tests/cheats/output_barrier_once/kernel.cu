// A barrier of the whole grid by a counter. It is never set back: from the second call on it is open before anybody came.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

__device__ unsigned arrived;

__device__ void GridBarrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const unsigned before = atomicAdd(&arrived, 1u);
    const unsigned wanted = kCheat ? gridDim.x : (before / gridDim.x + 1) * gridDim.x;
    while (int(*(volatile unsigned*)&arrived - wanted) < 0) {
    }
    __threadfence();
  }
  __syncthreads();
}

// The sum of all threads' values, in every thread.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kBlock / 32; ++warp) value += partial[warp];
  return value;
}

// out[i] = n x[i] / the sum of all magnitudes.
extern "C" __global__ void shares(const float* x, float* sums, float* out, int n) {
  float sum = 0;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) sum += fabsf(x[i]);
  sum = BlockSum(sum);
  if (threadIdx.x == 0) ((volatile float*)sums)[blockIdx.x] = sum;
  GridBarrier();
  sum = 0;
  for (int b = threadIdx.x; b < gridDim.x; b += kBlock) sum += ((volatile float*)sums)[b];
  sum = BlockSum(sum);
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) out[i] = float(n) * x[i] / sum;
}
