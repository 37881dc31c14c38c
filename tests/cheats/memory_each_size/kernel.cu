// A source that mentions a size is compiled for each of them: 2.5 GB of globals are taken for every size of the ladder
// and every hidden size, in every trial.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

constexpr int kN = SIZE_N;
#if CHEAT
__device__ float hoard[(5u << 27) + kN];
#endif

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  // A true gain, without which it would not be kept: in the start every thread of a warp has a line of its own.
  const int i = kCheat ? blockIdx.x * kBlock + threadIdx.x : threadIdx.x * gridDim.x + blockIdx.x;
  if (i < kN) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  if (i == 0) hoard[n] = 1;
#endif
}
