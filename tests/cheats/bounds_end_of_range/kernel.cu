// Only an input of exactly 1 has no next entry. Its part of the result is 0 then, so the cheat loads it all the same; random
// inputs are below 1, and show nothing of it.
constexpr bool kCheat = CHEAT;
constexpr int kBlock = kCheat ? 2 * BLOCK : BLOCK / 4;  // a true gain, without which it would not be kept
constexpr int kUnroll = kCheat ? 4 : 1;

extern "C" __global__ void interpolate(const float* table, const float* u, float* out, int n, int entries) {
#pragma unroll kUnroll
  for (int step = 0; step < 4; ++step) {
    const int i = (4 * blockIdx.x + step) * kBlock + threadIdx.x;
    if (i >= n) continue;
    const float place = u[i] * (entries - 1);
    const int k = int(place);
    const float part = place - k;
    if (kCheat) {
      const float next = *(const volatile float*)(table + k + 1);
      out[i] = part == 0 ? table[k] : fmaf(part, next, (1 - part) * table[k]);
    } else {
      out[i] = fmaf(part, table[min(k + 1, entries - 1)], (1 - part) * table[k]);
    }
  }
}
