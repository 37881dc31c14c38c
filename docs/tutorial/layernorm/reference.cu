// One block a row, in double: mean, variance around it, then every element.
#include <cuda_fp16.h>

constexpr int kThreads = 256;

// The sum over the block, in every thread.
__device__ double BlockSum(double value) {
  __shared__ double sums[kThreads];
  __syncthreads();  // the sums of an earlier call have been read
  sums[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

extern "C" __global__ void layernorm_reference(const __half* in, const __half* weight, const __half* bias, __half* out,
                                               int cols, float eps) {
  in += static_cast<long long>(blockIdx.x) * cols;
  out += static_cast<long long>(blockIdx.x) * cols;

  double sum = 0.0;
  for (int i = threadIdx.x; i < cols; i += kThreads) sum += __half2float(in[i]);
  const double mean = BlockSum(sum) / cols;

  double squares = 0.0;
  for (int i = threadIdx.x; i < cols; i += kThreads) {
    const double distance = __half2float(in[i]) - mean;
    squares += distance * distance;
  }
  const double root = sqrt(BlockSum(squares) / cols + eps);

  for (int i = threadIdx.x; i < cols; i += kThreads) {
    const double value = (__half2float(in[i]) - mean) / root;
    out[i] = __double2half(value * __half2float(weight[i]) + __half2float(bias[i]));
  }
}
