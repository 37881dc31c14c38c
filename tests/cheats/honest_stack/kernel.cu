// A stack that is used: each thread keeps the places of its walk, and looks the last one up. A table of constants beside it.
constexpr int kBlock = BLOCK;
constexpr int kSteps = 32;

__constant__ int offset[8];

extern "C" __global__ void walk(const int* next, int* out, int n) {
  const int walk = blockIdx.x * kBlock + threadIdx.x;
  if (walk >= (n + 1023) / 1024) return;
  volatile int places[kSteps + 1];
  places[0] = walk * 1024;
#pragma unroll 1
  for (int step = 0; step < kSteps; ++step) places[step + 1] = next[places[step]];
  out[walk] = places[kSteps] + offset[walk % 8];
}
