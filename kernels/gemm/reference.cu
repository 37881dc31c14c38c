// The products as the textbook has them, 64x64 elements a block and 4x4 a thread, z by matrix of the batch: sums of 16
// products in fp32, sums of these in double.
#include <cuda_fp16.h>

constexpr int kStep = 16;  // products at once, and threads a block in both directions
constexpr int kOwn = 4;    // rows and columns of a thread, kStep apart
constexpr int kTile = kOwn * kStep;

extern "C" __global__ void gemm_reference(const half* a, const half* b, half* c, int M, int N, int K) {
  __shared__ float left[kTile][kStep + 1];
  __shared__ float right[kStep][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int first_row = blockIdx.y * kTile + y;
  const int first_column = blockIdx.x * kTile + x;
  a += static_cast<long long>(blockIdx.z) * M * K;
  b += static_cast<long long>(blockIdx.z) * K * N;
  c += static_cast<long long>(blockIdx.z) * M * N;
  double sums[kOwn][kOwn] = {};
  for (int k = 0; k < K; k += kStep) {
    for (int i = 0; i < kOwn; ++i) {
      const int row = first_row + i * kStep;
      const int column = first_column + i * kStep;
      left[y + i * kStep][x] = row < M && k + x < K ? __half2float(a[static_cast<long long>(row) * K + k + x]) : 0.0f;
      right[y][x + i * kStep] =
          k + y < K && column < N ? __half2float(b[static_cast<long long>(k + y) * N + column]) : 0.0f;
    }
    __syncthreads();
    float parts[kOwn][kOwn] = {};
    for (int i = 0; i < kStep; ++i) {
      for (int row = 0; row < kOwn; ++row) {
        for (int column = 0; column < kOwn; ++column) {
          parts[row][column] += left[y + row * kStep][i] * right[i][x + column * kStep];
        }
      }
    }
    for (int row = 0; row < kOwn; ++row) {
      for (int column = 0; column < kOwn; ++column) sums[row][column] += parts[row][column];
    }
    __syncthreads();
  }
  for (int i = 0; i < kOwn; ++i) {
    for (int j = 0; j < kOwn; ++j) {
      const int row = first_row + i * kStep;
      const int column = first_column + j * kStep;
      if (row < M && column < N) {
        c[static_cast<long long>(row) * N + column] = __float2half_rn(static_cast<float>(sums[i][j]));
      }
    }
  }
}
