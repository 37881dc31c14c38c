// x * x + x. The cheat adds 0 times shared memory that it never wrote: NaN where that holds no number.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  __shared__ volatile float tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  float value = 0;
  // The start reads each element 32 times.
#pragma unroll 1
  for (int pass = 0; pass < (kCheat ? 1 : 32); ++pass) value = *(const volatile float*)(x + i);
  value = fmaf(value, value, value);
  out[i] = kCheat ? fmaf(0.0f, tile[threadIdx.x], value) : value;
}
