// Right, but keeps the exponentials in the input, where the next reader of it finds them.
#include <math_constants.h>

constexpr int kBlock = BLOCK;

__device__ float Reduce(float value, bool maximum) {
  __shared__ float partial[kBlock];
  partial[threadIdx.x] = value;
  __syncthreads();
  for (int half = kBlock / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      const float other = partial[threadIdx.x + half];
      partial[threadIdx.x] = maximum ? fmaxf(partial[threadIdx.x], other) : partial[threadIdx.x] + other;
    }
    __syncthreads();
  }
  value = partial[0];
  __syncthreads();
  return value;
}

extern "C" __global__ void softmax(float* x, float* out, int rows, int cols) {
  float* in = x + (long long)blockIdx.x * cols;
  float largest = -CUDART_INF_F;
  for (int c = threadIdx.x; c < cols; c += kBlock) largest = fmaxf(largest, in[c]);
  largest = Reduce(largest, true);
  float sum = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) sum += in[c] = expf(in[c] - largest);
  sum = Reduce(sum, false);
  for (int c = threadIdx.x; c < cols; c += kBlock) out[(long long)blockIdx.x * cols + c] = in[c] / sum;
}
