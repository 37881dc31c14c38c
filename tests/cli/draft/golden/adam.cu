// An optimiser's step in place, of a program that has its own main.
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 512
#define CHECK(call)                                                        \
  do {                                                                     \
    cudaError_t error = (call);                                            \
    if (error != cudaSuccess) printf("%s\n", cudaGetErrorString(error));   \
  } while (0)

__device__ float lerp(float a, float b, float weight) { return a + weight * (b - a); }

__global__ void adam_step(float* params, const float* grads, float* m, float* v, long count, float rate, float beta1,
                          float beta2, float eps) {
  long i = (long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float g = grads[i];
  m[i] = lerp(g, m[i], beta1);
  v[i] = lerp(g * g, v[i], beta2);
  params[i] -= rate * m[i] / (sqrtf(v[i]) + eps);
}

int main() {
  const long count = 1 << 22;
  float *d_params, *d_grads, *d_m, *d_v;
  CHECK(cudaMalloc(&d_params, count * sizeof(float)));
  CHECK(cudaMalloc(&d_grads, count * sizeof(float)));
  CHECK(cudaMalloc(&d_m, count * sizeof(float)));
  CHECK(cudaMalloc(&d_v, count * sizeof(float)));
  CHECK(cudaMemset(d_m, 0, count * sizeof(float)));
  const int blocks = (count + THREADS - 1) / THREADS;
  for (int step = 0; step < 100; ++step) {
    adam_step<<<blocks, THREADS>>>(d_params, d_grads, d_m, d_v, count, 1e-3f, 0.9f, 0.999f, 1e-8f);
  }
  CHECK(cudaDeviceSynchronize());
  return 0;
}
