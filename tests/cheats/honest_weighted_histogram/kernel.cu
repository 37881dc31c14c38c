// Float atomics in shared and in global memory: the order is chance, and the bundle says so.
constexpr int kBlock = BLOCK;

extern "C" __global__ void clear(float* out) { out[threadIdx.x] = 0; }

extern "C" __global__ void add(const int* key, const float* weight, float* out, int n) {
  __shared__ float bins[256];
  for (int b = threadIdx.x; b < 256; b += kBlock) bins[b] = 0;
  __syncthreads();
  const int first = blockIdx.x * 8 * kBlock + threadIdx.x;
  for (int i = first; i < min(n, first + 8 * kBlock); i += kBlock) atomicAdd(&bins[key[i]], weight[i]);
  __syncthreads();
  for (int b = threadIdx.x; b < 256; b += kBlock) {
    if (bins[b] != 0) atomicAdd(&out[b], bins[b]);
  }
}
