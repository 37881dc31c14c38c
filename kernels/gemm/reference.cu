// The products as the textbook has them, 16x16 elements a block, z by matrix of the batch: sums of 16 products in fp32,
// sums of these in double.
#include <cuda_fp16.h>

constexpr int kTile = 16;

extern "C" __global__ void gemm_reference(const half* a, const half* b, half* c, int M, int N, int K) {
  __shared__ float left[kTile][kTile];
  __shared__ float right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  a += static_cast<long long>(blockIdx.z) * M * K;
  b += static_cast<long long>(blockIdx.z) * K * N;
  c += static_cast<long long>(blockIdx.z) * M * N;
  double sum = 0.0;
  for (int k = 0; k < K; k += kTile) {
    const int ka = k + threadIdx.x;
    const int kb = k + threadIdx.y;
    left[threadIdx.y][threadIdx.x] = row < M && ka < K ? __half2float(a[static_cast<long long>(row) * K + ka]) : 0.0f;
    right[threadIdx.y][threadIdx.x] =
        kb < K && column < N ? __half2float(b[static_cast<long long>(kb) * N + column]) : 0.0f;
    __syncthreads();
    float part = 0.0f;
    for (int i = 0; i < kTile; ++i) part += left[threadIdx.y][i] * right[i][threadIdx.x];
    sum += part;
    __syncthreads();
  }
  if (row < M && column < N) c[static_cast<long long>(row) * N + column] = __float2half_rn(static_cast<float>(sum));
}
