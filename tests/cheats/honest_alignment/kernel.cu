// Addresses are multiples of 4 bytes, no more. Where all three are at the same distance from 16 bytes, the elements before
// the first such place and behind the last are done one by one, and those between them in groups of four.
constexpr int kBlock = BLOCK;

__device__ int Skew(const void* address) { return int((unsigned long long)address / 4 % 4); }

extern "C" __global__ void scaled_add(const float* x, const float* y, float* out, int n, float a) {
  const int t = blockIdx.x * kBlock + threadIdx.x;
  const int head = (4 - Skew(x)) % 4;
  if (Skew(x) != Skew(y) || Skew(x) != Skew(out) || head > n) {
    for (int i = 4 * t; i < min(n, 4 * t + 4); ++i) out[i] = fmaf(a, x[i], y[i]);
    return;
  }
  const int first = head + 4 * t;
  if (t < head) out[t] = fmaf(a, x[t], y[t]);
  if (first + 3 < n) {
    const float4 u = *(const float4*)(x + first), v = *(const float4*)(y + first);
    *(float4*)(out + first) = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
  } else {
    for (int i = first; i < n; ++i) out[i] = fmaf(a, x[i], y[i]);
  }
}
