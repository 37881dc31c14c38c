// draft: wA = 320
// draft: wB = 640
// draft: grid = ["floor(wB / BLOCK_SIZE)", "floor(320 / BLOCK_SIZE)"]
// draft: block = ["BLOCK_SIZE", "BLOCK_SIZE"]
// draft: shape: the host allocates 102400 elements, and these are 10240 at the main size: which is right?
#include <cuda_runtime.h>
#include <helper_cuda.h>
#include <stdio.h>
#define BLOCK_SIZE 16
__global__ void MatrixMulCUDA(float *C, float *A, float *B, int wA, int wB) {
  int bx = blockIdx.x, by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int aBegin = wA * BLOCK_SIZE * by;
  int aEnd = aBegin + wA - 1;
  int aStep = BLOCK_SIZE;
  int bBegin = BLOCK_SIZE * bx;
  int bStep = BLOCK_SIZE * wB;
  float Csub = 0;
  for (int a = aBegin, b = bBegin; a <= aEnd; a += aStep, b += bStep) {
    __shared__ float As[BLOCK_SIZE][BLOCK_SIZE];
    __shared__ float Bs[BLOCK_SIZE][BLOCK_SIZE];
    As[ty][tx] = A[a + wA * ty + tx];
    Bs[ty][tx] = B[b + wB * ty + tx];
    __syncthreads();
    for (int k = 0; k < BLOCK_SIZE; ++k) Csub += As[ty][k] * Bs[k][tx];
    __syncthreads();
  }
  int c = wB * BLOCK_SIZE * by + BLOCK_SIZE * bx;
  C[c + wB * ty + tx] = Csub;
}
int main(int argc, char **argv) {
  dim3 dimsA(320, 320, 1), dimsB(640, 320, 1);
  unsigned int size_A = dimsA.x * dimsA.y, size_B = dimsB.x * dimsB.y;
  float *d_A, *d_B, *d_C;
  dim3 dimsC(dimsB.x, dimsA.y, 1);
  checkCudaErrors(cudaMalloc(reinterpret_cast<void **>(&d_A), sizeof(float) * size_A));
  checkCudaErrors(cudaMalloc(reinterpret_cast<void **>(&d_B), sizeof(float) * size_B));
  checkCudaErrors(cudaMalloc(reinterpret_cast<void **>(&d_C), dimsC.x * dimsC.y * sizeof(float)));
  dim3 threads(BLOCK_SIZE, BLOCK_SIZE);
  dim3 grid(dimsB.x / threads.x, dimsA.y / threads.y);
  MatrixMulCUDA<<<grid, threads>>>(d_C, d_A, d_B, dimsA.x, dimsB.x);
  checkCudaErrors(cudaDeviceSynchronize());
}
