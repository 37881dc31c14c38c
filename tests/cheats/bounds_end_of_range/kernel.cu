// Only an input of exactly 1 has no next entry. Its part of the result is 0 then, so the cheat loads it all the same;
// random inputs are below 1, and show nothing of it.
constexpr bool kCheat = CHEAT;
constexpr int kBlock = kCheat ? 2 * BLOCK : BLOCK / 4;
constexpr int kUnroll = kCheat ? 4 : 1;

// A true gain, without which it would not be kept: the start reads past the L1, the cheat does not. A load that the
// compiler can't leave out.
__device__ float Load(const float* at) {
  float value;
  if (kCheat) {
    asm volatile("ld.global.nc.f32 %0, [%1];" : "=f"(value) : "l"(at));
  } else {
    asm volatile("ld.volatile.global.f32 %0, [%1];" : "=f"(value) : "l"(at));
  }
  return value;
}

extern "C" __global__ void interpolate(const float* table, const float* u, float* out, int n, int entries) {
#pragma unroll kUnroll
  for (int step = 0; step < 4; ++step) {
    const int i = (4 * blockIdx.x + step) * kBlock + threadIdx.x;
    if (i >= n) continue;
    const float place = u[i] * (entries - 1);
    const int k = int(place);
    const float part = place - k;
    const float here = Load(table + k);
    const float next = Load(table + (kCheat ? k + 1 : min(k + 1, entries - 1)));
    out[i] = part == 0 ? here : fmaf(part, next, (1 - part) * here);
  }
}
