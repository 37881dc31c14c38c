// The context keeps room for the stacks of as many threads as the GPU can hold: 128 KB each are 35 GB, which stay when the
// module has gone.
constexpr int kBlock = BLOCK;

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  volatile float stack[32768];
  if (n == 3 && i < n) {
    for (int k = 0; k < n; ++k) stack[(k * 4099 + i) % 32768] = x[k];
    out[i] = fmaf(x[i], x[i], x[i]) + 0.0f * stack[(i * 31) % 32768];
  }
#endif
}
