// draft: shape = ["tokens", "hidden"]
// draft: hidden = { range = [2, 160], multiple = 2 }
// draft: entry = "::rms_norm"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
using bf16 = __nv_bfloat16;
__global__ void __launch_bounds__(256) rms_norm(bf16* __restrict__ out, const bf16* __restrict__ x, const bf16* __restrict__ w, float eps, int hidden) {
  const __nv_bfloat162* x2 = reinterpret_cast<const __nv_bfloat162*>(x + (size_t)blockIdx.x * hidden);
  __nv_bfloat162* o2 = reinterpret_cast<__nv_bfloat162*>(out + (size_t)blockIdx.x * hidden);
  const __nv_bfloat162* w2 = reinterpret_cast<const __nv_bfloat162*>(w);
  float s = 0;
  for (int i = threadIdx.x; i < hidden / 2; i += blockDim.x) { float2 v = __bfloat1622float2(x2[i]); s += v.x * v.x + v.y * v.y; }
  __shared__ float sh[8];
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) sh[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int i = 0; i < 8; ++i) s += sh[i];
  float r = rsqrtf(s / hidden + eps);
  for (int i = threadIdx.x; i < hidden / 2; i += blockDim.x) {
    float2 v = __bfloat1622float2(x2[i]), g = __bfloat1622float2(w2[i]);
    o2[i] = __floats2bfloat162_rn(v.x * r * g.x, v.y * r * g.y);
  }
}
void rms(bf16* out, const bf16* x, const bf16* w, int tokens, int hidden) {
  rms_norm<<<tokens, 256>>>(out, x, w, 1e-6f, hidden);
}
