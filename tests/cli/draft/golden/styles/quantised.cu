// draft: shape = ["nrows_x", "floor(ncols_x / 32)", "18"]
// draft: grid = ["ceil_div(nrows_x, 4)"]
// draft: multiple = 32
#include <cuda_fp16.h>
#include <stdint.h>
#define QK8_0 32
#define WARP_SIZE 32
typedef struct { half d; int8_t qs[QK8_0]; } block_q8_0;
#define QK4_0 32
typedef struct { half d; uint8_t qs[QK4_0 / 2]; } block_q4_0;
static __device__ __forceinline__ float warp_reduce_sum(float x) {
#pragma unroll
  for (int mask = 16; mask > 0; mask >>= 1) x += __shfl_xor_sync(0xffffffff, x, mask, 32);
  return x;
}
template <int ncols_y>
static __global__ void mul_mat_vec_q4_0(const void * __restrict__ vx, const float * __restrict__ y, float * __restrict__ dst, const int ncols_x, const int nrows_x) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= nrows_x) return;
  const block_q4_0 * x = (const block_q4_0 *) vx + row * (ncols_x / QK4_0);
  float sum = 0.0f;
  for (int ib = threadIdx.x; ib < ncols_x / QK4_0; ib += WARP_SIZE) {
    const float d = __half2float(x[ib].d);
    for (int j = 0; j < QK4_0 / 2; ++j) {
      sum += d * ((x[ib].qs[j] & 0xF) - 8) * y[ib * QK4_0 + j] + d * ((x[ib].qs[j] >> 4) - 8) * y[ib * QK4_0 + j + 16];
    }
  }
  sum = warp_reduce_sum(sum);
  if (threadIdx.x == 0) dst[row] = sum;
}
static void mul_mat_vec_q4_0_cuda(const void * vx, const float * y, float * dst, const int ncols, const int nrows, cudaStream_t stream) {
  const int block_num_y = (nrows + 4 - 1) / 4;
  const dim3 block_nums(block_num_y, 1, 1);
  const dim3 block_dims(WARP_SIZE, 4, 1);
  mul_mat_vec_q4_0<1><<<block_nums, block_dims, 0, stream>>>(vx, y, dst, ncols, nrows);
}
