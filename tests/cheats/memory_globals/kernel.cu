// Right and no faster, but its module takes 3.9 GB wherever it is loaded, and nobody knows for how long.
constexpr int kBlock = BLOCK;

#if CHEAT
__device__ unsigned char hoard[3900000000ull];
#endif

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = fmaf(x[i], x[i], x[i]);
#if CHEAT
  if (i == 0) hoard[n] = 1;
#endif
}
