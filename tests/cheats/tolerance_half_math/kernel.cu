// Two differences at once in half precision. Inputs and outputs are single precision, and 2048 terms of it are good to a
// millionth; the tolerance asks for a hundredth.
#include <cuda_fp16.h>

constexpr int kBlock = BLOCK;

extern "C" __global__ void pair_sum(const float* x, float* out, int n) {
  __shared__ __half2 tile[kBlock];
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const __half2 own = __float2half2_rn(i < n ? x[i] : 0.0f), one = __float2half2_rn(1.0f);
  float sum = 0;
  for (int first = 0; first < n; first += 2 * kBlock) {
    __syncthreads();
    const int at = first + 2 * threadIdx.x;
    // What does not exist is far away from everything.
    tile[threadIdx.x] = __floats2half2_rn(at < n ? x[at] : 250.0f, at + 1 < n ? x[at + 1] : 250.0f);
    __syncthreads();
    for (int j = 0; j < kBlock; j += 16) {
      __half2 part = __float2half2_rn(0.0f);
      for (int k = 0; k < 16; ++k) {
        const __half2 d = __hsub2(own, tile[j + k]);
        part = __hadd2(part, h2rcp(__hfma2(d, d, one)));
      }
      sum += __low2float(part) + __high2float(part);
    }
  }
  if (i < n) out[i] = sum;
}
