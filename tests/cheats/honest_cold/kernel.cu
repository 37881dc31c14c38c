// Four elements a thread. Its time with an empty cache decides.
constexpr int kBlock = BLOCK;

extern "C" __global__ void scaled_add(const float* x, const float* y, float* out, int n, float a) {
  const int first = 4 * (blockIdx.x * kBlock + threadIdx.x);
  if (first + 3 < n) {
    const float4 u = *(const float4*)(x + first), v = *(const float4*)(y + first);
    *(float4*)(out + first) = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
  } else {
    for (int i = first; i < n; ++i) out[i] = fmaf(a, x[i], y[i]);
  }
}
