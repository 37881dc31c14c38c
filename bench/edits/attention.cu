// Scaled dot-product attention, forward, fp16, D = 64: one block a query row, three passes.
#include <cuda_fp16.h>
#define D 64

extern "C" __global__ void attention(const __half* q, const __half* k, const __half* v, __half* out, int S,
                                     float scale) {
  extern __shared__ float scores[];
  __shared__ float red[64];
  const int row = blockIdx.x, head = blockIdx.y, t = threadIdx.x;
  q += (size_t(head) * S + row) * D;
  k += size_t(head) * S * D;
  v += size_t(head) * S * D;
  out += (size_t(head) * S + row) * D;
#if EDIT >= 1
  __half2 qr[D / 2];
#pragma unroll
  for (int d = 0; d < D / 2; ++d) qr[d] = reinterpret_cast<const __half2*>(q)[d];
#endif
  float m = -1e30f;
  for (int j = t; j < S; j += 64) {
    float s = 0;
#if EDIT >= 1
    const uint4* row_k = reinterpret_cast<const uint4*>(k + size_t(j) * D);
#pragma unroll
    for (int c = 0; c < D / 8; ++c) {
      const uint4 pack = row_k[c];
      const __half2* h = reinterpret_cast<const __half2*>(&pack);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 a = __half22float2(qr[c * 4 + e]), b = __half22float2(h[e]);
        s += a.x * b.x + a.y * b.y;
      }
    }
#else
    for (int d = 0; d < D; ++d) s += __half2float(q[d]) * __half2float(k[size_t(j) * D + d]);
#endif
    scores[j] = s * scale;
    m = fmaxf(m, scores[j]);
  }
  red[t] = m;
  __syncthreads();
  for (int h = 32; h > 0; h /= 2) {
    if (t < h) red[t] = fmaxf(red[t], red[t + h]);
    __syncthreads();
  }
  m = red[0];
  __syncthreads();
  float l = 0;
  for (int j = t; j < S; j += 64) {
    scores[j] = __expf(scores[j] - m);
    l += scores[j];
  }
  red[t] = l;
  __syncthreads();
  for (int h = 32; h > 0; h /= 2) {
    if (t < h) red[t] += red[t + h];
    __syncthreads();
  }
  l = red[0];
#if EDIT >= 2
  float part[8] = {};
  int j = 0;
  for (; j + 8 <= S; j += 8) {
#pragma unroll
    for (int e = 0; e < 8; ++e) part[e] += scores[j + e] * __half2float(v[size_t(j + e) * D + t]);
  }
  for (; j < S; ++j) part[0] += scores[j] * __half2float(v[size_t(j) * D + t]);
  const float acc = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
#else
  float acc = 0;
  for (int j = 0; j < S; ++j) acc += scores[j] * __half2float(v[size_t(j) * D + t]);
#endif
  out[t] = __float2half_rn(acc / l);
}
