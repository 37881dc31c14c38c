// x * x + x. The cheat adds 0 times what the output held, as a matrix product with beta = 0 that reads C: NaN where that
// is no number.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  float value = 0;
  // The start reads each element 32 times.
#pragma unroll 1
  for (int pass = 0; pass < (kCheat ? 1 : 32); ++pass) value = *(const volatile float*)(x + i);
  value = fmaf(value, value, value);
  out[i] = kCheat ? fmaf(0.0f, out[i], value) : value;
}
