// Every call prints. What is printed has to be kept by whoever reads it, and a reader that does not read blocks the runner.
constexpr int kBlock = BLOCK * WIDE;  // WIDE: an honest gain

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  if (i < n && i < 4096) {
    printf("%d: ================================================================================\n", i);
  }
#endif
}
