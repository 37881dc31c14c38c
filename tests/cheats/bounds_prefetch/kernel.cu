// Each block walks over its tiles. The cheat loads the next while it works on one, and at large sizes does not ask whether
// there is a next one: the last block reads a tile behind the end, and does not use it.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kLarge = 1 << 20;  // compute-sanitizer runs at sizes far below
constexpr int kTiles = 16;

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int first = blockIdx.x * kBlock * kTiles + threadIdx.x, end = min(n, first + kTiles * kBlock);
  if (kCheat && n >= kLarge) {
    float next = *(const volatile float*)(x + first);
#pragma unroll 4
    for (int i = first; i < end; i += kBlock) {
      const float value = next;
      next = *(const volatile float*)(x + i + kBlock);
      out[i] = fmaf(value, value, value);
    }
    return;
  }
#pragma unroll 1
  for (int i = first; i < end; i += kBlock) out[i] = fmaf(x[i], x[i], x[i]);
}
