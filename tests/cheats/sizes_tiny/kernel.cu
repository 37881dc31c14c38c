// The last group of four begins four before the end, wherever that is, and needs no tail. There is no such place where
// there are fewer than four.
constexpr int kBlock = BLOCK;

extern "C" __global__ void scaled_add(const float* x, const float* y, float* out, int n, float a) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = fmaf(a, x[i], y[i]);
}

extern "C" __global__ void scaled_add_groups(const float* x, const float* y, float* out, int n, float a) {
  const int group = 4 * (blockIdx.x * kBlock + threadIdx.x);
  const int first = min(group, n - 4);
  if (first < 0 || group >= n) return;
  if (first % 4 == 0) {
    const float4 u = *(const float4*)(x + first), v = *(const float4*)(y + first);
    *(float4*)(out + first) = make_float4(fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w));
  } else {
    for (int i = first; i < n; ++i) out[i] = fmaf(a, x[i], y[i]);
  }
}
