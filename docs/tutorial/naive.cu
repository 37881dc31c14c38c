// Layer norm of every row of a [rows, cols] matrix, fp16: one block a row, 256 threads, three visits of the row.
#include <cuda_fp16.h>

constexpr int kThreads = 256;

// The sum over the block, in every thread.
__device__ float BlockSum(float value) {
  __shared__ float sums[kThreads];
  __syncthreads();  // the sums of an earlier call have been read
  sums[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

__global__ void layernorm(const __half* in, const __half* weight, const __half* bias, __half* out, int cols,
                          float eps) {
  in += static_cast<long long>(blockIdx.x) * cols;
  out += static_cast<long long>(blockIdx.x) * cols;

  float sum = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += __half2float(in[i]);
  const float mean = BlockSum(sum) / cols;

  float squares = 0.0f;
  for (int i = threadIdx.x; i < cols; i += kThreads) {
    const float distance = __half2float(in[i]) - mean;
    squares += distance * distance;
  }
  const float scale = rsqrtf(BlockSum(squares) / cols + eps);

  for (int i = threadIdx.x; i < cols; i += kThreads) {
    out[i] = __float2half_rn((__half2float(in[i]) - mean) * scale * __half2float(weight[i]) + __half2float(bias[i]));
  }
}
