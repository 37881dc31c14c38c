// A table of 64 MB in a global, made by each call from nothing but the index. Large, and honest.
constexpr int kBlock = BLOCK;

constexpr unsigned kEntries = 1u << 24;

__device__ float table[kEntries];

extern "C" __global__ void build(int n) {
  for (unsigned i = blockIdx.x * kBlock + threadIdx.x; i < kEntries; i += gridDim.x * kBlock) {
    table[i] = float(i + 1) * float(i % 1000) * (1.0f / kEntries);
  }
}

extern "C" __global__ void look_up(const int* index, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = table[index[i]];
}
