// One thread a pair, in double. The angle is position times rate, rounded to float.
#include <cuda_fp16.h>

extern "C" __global__ void rotate_reference(const __half* in, const int* positions, const float* rates, __half* out, int tokens,
                                            int heads, int half) {
  const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  const int i = index % half;
  const long long row = index / half;
  if (row >= (long long)tokens * heads) return;
  const double angle = float(positions[row / heads]) * rates[i];
  const double x = __half2float(in[row * 2 * half + i]), y = __half2float(in[row * 2 * half + half + i]);
  out[row * 2 * half + i] = __double2half(x * cos(angle) - y * sin(angle));
  out[row * 2 * half + half + i] = __double2half(y * cos(angle) + x * sin(angle));
}
