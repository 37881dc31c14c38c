// Each block walks over its tiles and loads the next while it works on one. At large sizes nobody asks whether there is a
// next one: the last block reads a tile behind the end, and does not use it.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kLarge = 1 << 20;  // compute-sanitizer runs at sizes far below
constexpr int kTiles = 16;

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int first = blockIdx.x * kBlock * kTiles + threadIdx.x;
  const bool careless = kCheat && n >= kLarge;
  float next = first < n ? x[first] : 0.0f;
  for (int t = 0; t < kTiles; ++t) {
    const int i = first + t * kBlock;
    if (i >= n) break;
    const float value = next;
    if (careless) {
      next = *(const volatile float*)(x + i + kBlock);
    } else if (i + kBlock < n) {
      next = x[i + kBlock];
    }
    out[i] = fmaf(value, value, value);
  }
}
