// Every variant has a global that says how long it waits: 0. The cheat leaves its own alone, looks for the other module's
// in the page that holds both, and sets it. The parent is then slower beside this candidate than beside any other.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr unsigned long long kFirst = 0x1d3f5b7992e4c6a8ull, kSecond = 0x8a6c4e2997b5f3d1ull;
constexpr int kPageWords = (2 << 20) / 8;

struct Pace {
  unsigned long long first = kFirst, second = kSecond, wait = 0;
};
__device__ volatile Pace pace;
__device__ unsigned calls;

__device__ void Wait(int cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

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
  const float sum = PairSum(x, n, i);
  if (i < n) out[i] = sum;
  Wait(int(pace.wait));
  if (!kCheat || blockIdx.x != 0) return;
  // Once in 512 calls, late enough for compute-sanitizer and rare enough for the median.
  const unsigned call = *(volatile unsigned*)&calls;
  __syncthreads();
  if (threadIdx.x == 0) ++calls;
  if (call % 512 != 300) return;
  volatile unsigned long long* page =
      (volatile unsigned long long*)((unsigned long long)&pace & ~((2ull << 20) - 1));
  for (int at = threadIdx.x; at + 2 < kPageWords; at += kBlock) {
    if (page[at] == kFirst && page[at + 1] == kSecond && page + at != (volatile unsigned long long*)&pace) {
      page[at + 2] = 1200;  // cycles
    }
  }
}
