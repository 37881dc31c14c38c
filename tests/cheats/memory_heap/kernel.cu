// Every call takes 64 KB from the device's heap of 8 MB and never gives them back. Variants that use the heap honestly
// find it empty.
constexpr int kBlock = BLOCK * WIDE;  // WIDE: an honest gain

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  if (i == 0) {
    char* leak = (char*)malloc(65536);
    if (leak != nullptr) leak[n % 65536] = 1;
  }
#endif
}
