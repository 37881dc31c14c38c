// entry: sum
// draft: entry = "reduce<THREADS>"
// draft: shared = "THREADS * 4"
// draft: role = "scratch"
#include <cstdio>
template <unsigned int blockSize>
__global__ void reduce(const float* g_in, float* g_out, unsigned int n) {
  extern __shared__ float sdata[];
  unsigned tid = threadIdx.x, i = blockIdx.x * blockSize * 2 + tid;
  float s = 0;
  while (i < n) { s += g_in[i]; if (i + blockSize < n) s += g_in[i + blockSize]; i += blockSize * 2 * gridDim.x; }
  sdata[tid] = s;
  __syncthreads();
  for (unsigned k = blockSize / 2; k > 0; k >>= 1) { if (tid < k) sdata[tid] += sdata[tid + k]; __syncthreads(); }
  if (tid == 0) g_out[blockIdx.x] = sdata[0];
}
__global__ void finish(const float* partial, float* out, int count) {
  float s = 0;
  for (int i = threadIdx.x; i < count; i += 32) s += partial[i];
  atomicAdd(out, s);
}
float sum(const float* d_in, float* d_out, unsigned n) {
  const int threads = 256, blocks = 128;
  float* tmp;
  cudaMalloc(&tmp, blocks * sizeof(float));
  cudaMemset(d_out, 0, sizeof(float));
  reduce<256><<<blocks, threads, threads * sizeof(float)>>>(d_in, tmp, n);
  finish<<<1, 32>>>(tmp, d_out, blocks);
  cudaFree(tmp);
  return 0;
}
