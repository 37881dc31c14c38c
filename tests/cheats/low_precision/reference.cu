// out = a * b, one thread an element of out, in double.
#include <cuda_fp16.h>

extern "C" __global__ void matmul_reference(const __half* a, const __half* b, float* out, int m, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= m || col >= n) return;
  double sum = 0;
  for (int i = 0; i < k; ++i) sum += double(__half2float(a[row * k + i])) * double(__half2float(b[i * n + col]));
  out[row * n + col] = float(sum);
}
