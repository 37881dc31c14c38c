// draft: one allocation; here q and k are tensors of their own
// draft: entry = "rope<128, TUNE_BLOCK>"
// draft: block = ["TUNE_BLOCK"]
#include <cuda_fp16.h>
template <int HEAD_DIM, int BLOCK>
__global__ void rope(half* q, half* k, const float* __restrict__ cs, int heads, int tokens) {
  int t = blockIdx.x, h = blockIdx.y;
  for (int i = threadIdx.x; i < HEAD_DIM / 2; i += BLOCK) {
    float c = cs[t * HEAD_DIM + i], s = cs[t * HEAD_DIM + HEAD_DIM / 2 + i];
    int o = (t * heads + h) * HEAD_DIM + i;
    float a = __half2float(q[o]), b = __half2float(q[o + HEAD_DIM / 2]);
    q[o] = __float2half(a * c - b * s); q[o + HEAD_DIM / 2] = __float2half(a * s + b * c);
    a = __half2float(k[o]); b = __half2float(k[o + HEAD_DIM / 2]);
    k[o] = __float2half(a * c - b * s); k[o + HEAD_DIM / 2] = __float2half(a * s + b * c);
  }
}
void apply(half* qkv, const float* cs, int tokens, int heads) {
  half* q = qkv;
  half* k = qkv + (size_t)tokens * heads * 128;
  rope<128, 64><<<dim3(tokens, heads), 64>>>(q, k, cs, heads, tokens);
}
