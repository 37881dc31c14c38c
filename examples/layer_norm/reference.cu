#include <cuda_fp16.h>

extern "C" __global__ void layer_norm_reference(const __half* x, const __half* gamma, const __half* beta, __half* y,
                                                int columns, float epsilon) {
  const size_t row = static_cast<size_t>(blockIdx.x) * columns;
  __shared__ double mean, scale;
  if (threadIdx.x == 0) {
    double sum = 0, squares = 0;
    for (int i = 0; i < columns; ++i) sum += __half2float(x[row + i]);
    mean = sum / columns;
    for (int i = 0; i < columns; ++i) squares += (__half2float(x[row + i]) - mean) * (__half2float(x[row + i]) - mean);
    scale = 1 / sqrt(squares / columns + epsilon);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const double value = (__half2float(x[row + i]) - mean) * scale;
    y[row + i] = __double2half(value * __half2float(gamma[i]) + __half2float(beta[i]));
  }
}
