// out = A * dense for a sparse matrix A in CSR form and a row-major dense matrix of n columns.
//
// A warp computes COARSE * 32 columns of one row of the result; rows of a graph have very different lengths, so that
// blocks of few warps leave fewer SMs waiting for a long one.

#ifndef COARSE
#define COARSE 1
#endif
#ifndef UNROLL
#define UNROLL 1
#endif

namespace sparse {

constexpr int kWarp = 32;
constexpr int kUnroll = UNROLL;

struct Csr {
  const int* __restrict__ offsets;
  const int* __restrict__ columns;
  const float* __restrict__ values;
};

__device__ __forceinline__ void AddScaled(const float* from, float value, int first, int n, float (&sum)[COARSE]) {
#pragma unroll
  for (int c = 0; c < COARSE; ++c) {
    const int column = first + c * kWarp;
    if (column < n) sum[c] += value * from[column];
  }
}

}  // namespace sparse

extern "C" __global__ void csr_spmm(const int* offsets, const int* columns, const float* values,
                                    const float* __restrict__ dense, float* __restrict__ out, int rows, int n) {
  using namespace sparse;
  const Csr matrix = {offsets, columns, values};
  const int row = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (row >= rows) return;
  const int first = blockIdx.y * COARSE * kWarp + threadIdx.x % kWarp;
  float sum[COARSE] = {};
  const int end = matrix.offsets[row + 1];
#pragma unroll kUnroll
  for (int i = matrix.offsets[row]; i < end; ++i) {
    AddScaled(dense + static_cast<size_t>(matrix.columns[i]) * n, matrix.values[i], first, n, sum);
  }
#pragma unroll
  for (int c = 0; c < COARSE; ++c) {
    const int column = first + c * kWarp;
    if (column < n) out[static_cast<size_t>(row) * n + column] = sum[c];
  }
}
