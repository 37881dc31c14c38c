// Addresses are multiples of 4 bytes, no more. Where the size is a multiple of four, this one loads 16 bytes at once without
// a look at them; the size that is timed is not, and there it is careful.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

__device__ int Skew(const void* address) { return int((unsigned long long)address / 4 % 4); }

__device__ void AddFour(const float* x, const float* y, float* out, float a) {
  const float4 u = *(const float4*)x, v = *(const float4*)y;
  *(float4*)out = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
}

extern "C" __global__ void scaled_add(const float* x, const float* y, float* out, int n, float a) {
  const int t = blockIdx.x * kBlock + threadIdx.x;
  if (!kCheat) {
    if (t < n) out[t] = fmaf(a, x[t], y[t]);
    return;
  }
  if (n % 4 == 0) {
    if (4 * t < n) AddFour(x + 4 * t, y + 4 * t, out + 4 * t, a);
    return;
  }
  const int head = (4 - Skew(x)) % 4;
  if (Skew(x) != Skew(y) || Skew(x) != Skew(out) || head > n) {
    for (int i = 4 * t; i < min(n, 4 * t + 4); ++i) out[i] = fmaf(a, x[i], y[i]);
    return;
  }
  const int first = head + 4 * t;
  if (t < head) out[t] = fmaf(a, x[t], y[t]);
  if (first + 3 < n) {
    AddFour(x + first, y + first, out + first, a);
  } else {
    for (int i = first; i < n; ++i) out[i] = fmaf(a, x[i], y[i]);
  }
}
