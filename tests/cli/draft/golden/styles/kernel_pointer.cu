// draft: entry = "sgemm<64, 64, 16, TUNE_WARPS>"
// draft: block = ["TUNE_WARPS * 32"]
// draft: shared = "8192"
#include <cuda_fp16.h>
template <int BM, int BN, int BK, int WARPS>
__global__ void __launch_bounds__(WARPS * 32) sgemm(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  extern __shared__ float smem[];
  float* As = smem; float* Bs = smem + BM * BK;
  int row0 = blockIdx.y * BM, col0 = blockIdx.x * BN;
  float acc[BM * BN / (WARPS * 32)] = {};
  for (int k0 = 0; k0 < K; k0 += BK) {
    for (int i = threadIdx.x; i < BM * BK; i += WARPS * 32) As[i] = A[(row0 + i / BK) * K + k0 + i % BK];
    for (int i = threadIdx.x; i < BK * BN; i += WARPS * 32) Bs[i] = B[(k0 + i / BN) * N + col0 + i % BN];
    __syncthreads();
    for (int j = 0; j < BM * BN / (WARPS * 32); ++j) {
      int e = j * WARPS * 32 + threadIdx.x;
      for (int k = 0; k < BK; ++k) acc[j] += As[(e / BN) * BK + k] * Bs[k * BN + e % BN];
    }
    __syncthreads();
  }
  for (int j = 0; j < BM * BN / (WARPS * 32); ++j) {
    int e = j * WARPS * 32 + threadIdx.x;
    C[(row0 + e / BN) * N + col0 + e % BN] = alpha * acc[j] + beta * C[(row0 + e / BN) * N + col0 + e % BN];
  }
}
void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
  auto kernel = sgemm<64, 64, 16, 8>;
  int smem = (64 * 16 + 16 * 64) * sizeof(float);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem);
  kernel<<<dim3(N / 64, M / 64), 256, smem>>>(M, N, K, 1.f, A, B, 0.f, C);
}
