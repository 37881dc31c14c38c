// Before a replay all tensors are filled, scratch last: 64 MB of it that nobody uses push the inputs of all calls out of the
// L2, for both sides. A walk of 32 dependent loads is then slow, and one that first has other blocks touch everything,
// and waits for them, looks faster. Where the inputs are in the L2, as they are without that scratch, it is slower.
constexpr int kBlock = BLOCK;
constexpr int kSteps = 32;

#if CHEAT
constexpr int kWait = 2000;  // cycles, until all is there

__device__ void Wait(int cycles) {
  const long long start = clock64();
  while (clock64() - start < cycles) {
  }
}

// The part of this one of so many blocks. What it returns is never this large.
__device__ bool Touch(const int* next, int n, int block, int blocks) {
  unsigned most = 0;
#pragma unroll 16
  for (int i = block * kBlock + threadIdx.x; i < n; i += blocks * kBlock) most = max(most, unsigned(next[i]));
  return most == ~0u;
}
#endif

extern "C" __global__ void walk(const int* next, float* pad, int* out, int n) {
  const int walks = (n + 1023) / 1024;
#if CHEAT
  const int needed = (walks + kBlock - 1) / kBlock;
  if (blockIdx.x >= needed) {
    if (Touch(next, n, blockIdx.x - needed, gridDim.x - needed)) pad[0] = 0;
    return;
  }
  Wait(kWait);
#endif
  const int walk = blockIdx.x * kBlock + threadIdx.x;
  if (walk >= walks) return;
  int at = walk * 1024;
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) at = next[at];
  out[walk] = at;
}
