#include <cuda_fp16.h>

extern "C" __global__ void scale_rows_reference(const __half* in, float* out, int cols, float factor, const int* first,
                                                int* copied) {
  if (threadIdx.x == 0) copied[blockIdx.x] = first[blockIdx.x];
  for (int column = threadIdx.x; column < cols; column += blockDim.x) {
    const long long at = (long long)blockIdx.x * cols + column;
    out[at] = factor * __half2float(in[at]);
  }
}
