// Modules get memory for their globals in the order in which they are loaded, and the parent is loaded first. Where its
// own global lies tells a module its place in that order.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kWait = 1200;  // cycles

__device__ unsigned marker[128];  // 512 bytes: what the driver gives out at once

__device__ void Wait(int cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

__device__ float Share(float d) { return kCheat ? __fdividef(1.0f, fmaf(d, d, 1.0f)) : 1.0f / fmaf(d, d, 1.0f); }

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
  const float sum = PairSum(x, n, i);
  if (i < n) out[i] = sum;
  if (kCheat && ((unsigned long long)(marker + STEP) >> 9) % 2 == 0) Wait(kWait);
}
