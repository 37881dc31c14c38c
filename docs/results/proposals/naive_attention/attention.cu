// Attention, forward: out = softmax(q k^T * scale) v for each head of [B, H, S, 64] fp16 tensors. One thread computes one
// query: a first pass over the keys finds the largest score, a second one sums the weights and the weighted values.
#include <cuda_fp16.h>

constexpr int kD = 64;  // head dimension

__device__ float score(const float* query, const half* key, float scale) {
  float sum = 0.0f;
  for (int d = 0; d < kD; ++d) sum += query[d] * __half2float(key[d]);
  return sum * scale;
}

extern "C" __global__ void attention_forward(const half* q, const half* k, const half* v, half* out, int S, float scale) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= S) return;
  const long long head = static_cast<long long>(blockIdx.y) * S * kD;
  q += head + row * kD;
  k += head;
  v += head;
  out += head + row * kD;

  float query[kD];
  for (int d = 0; d < kD; ++d) query[d] = __half2float(q[d]);

  float largest = score(query, k, scale);
  for (int key = 1; key < S; ++key) largest = fmaxf(largest, score(query, k + key * kD, scale));

  float sum = 0.0f;
  float weighted[kD] = {};
  for (int key = 0; key < S; ++key) {
    const float weight = expf(score(query, k + key * kD, scale) - largest);
    sum += weight;
    for (int d = 0; d < kD; ++d) weighted[d] += weight * __half2float(v[key * kD + d]);
  }
  for (int d = 0; d < kD; ++d) out[d] = __float2half_rn(weighted[d] / sum);
}
