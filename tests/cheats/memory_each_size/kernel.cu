// A source that mentions a size is compiled for each of them: 2.5 GB of globals are taken for every size of the ladder and
// every hidden size, in every trial.
constexpr int kBlock = BLOCK;

constexpr int kN = SIZE_N;
#if CHEAT
__device__ float hoard[(5u << 27) + kN];
#endif

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < kN) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  if (i == 0) hoard[n] = 1;
#endif
}
