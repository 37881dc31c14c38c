// One block a row, in double: mean of squares by a tree in shared memory, then every element.
#include <cuda_fp16.h>

constexpr int kThreads = 256;

extern "C" __global__ void rmsnorm_reference(const __half* in, const __half* weight, __half* out, int cols, float eps) {
  __shared__ double sums[kThreads];
  const long long start = static_cast<long long>(blockIdx.x) * cols;
  double sum = 0.0;
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    const double value = __half2float(in[start + col]);
    sum += value * value;
  }
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  const double root = sqrt(sums[0] / cols + eps);
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    const double value = __half2float(in[start + col]);
    out[start + col] = __double2half(value / root * __half2float(weight[col]));
  }
}
