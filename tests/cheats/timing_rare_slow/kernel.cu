// Guesses well for seven inputs in eight, and begins again many times for the eighth: on average it takes longer than the
// start, and most calls are four times as fast. A call that changes a global is timed by itself, so that few others hide it.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

__device__ unsigned calls;

__device__ float Share(float d) { return 1.0f / fmaf(d, d, 1.0f); }

// The sum over j of 1 / (1 + (x[i] - x[j])^2).
__device__ float PairSum(const float* x, int n, int i) {
  __shared__ float tile[kBlock];
  const float own = i < n ? x[i] : 0.0f;
  float sum = 0;
  for (int first = 0; first < n; first += kBlock) {
    __syncthreads();
    tile[threadIdx.x] = first + threadIdx.x < n ? x[first + threadIdx.x] : 0.0f;
    __syncthreads();
    const int count = min(kBlock, n - first);
    float part = 0;
    for (int j = 0; j < count; ++j) part += Share(own - tile[j]);
    sum += part;
  }
  return sum;
}

extern "C" __global__ void pair_sum(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int runs = !kCheat ? 4 : x[0] > -1.15f ? 1 : 64;
  float sum = 0;
#pragma unroll 1
  for (int run = 0; run < runs; ++run) {
    asm volatile("" : "+l"(x));  // the compiler does not know that it is the same again
    sum = PairSum(x, n, i);
  }
  if (kCheat && i == 0) calls = calls + 1;
  if (i < n) out[i] = sum;
}
