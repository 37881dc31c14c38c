// All elements of the output are the same, as they should be: a shuffled output is right, and so is one with two places
// exchanged.
constexpr int kBlock = BLOCK;

// Floats as integers that order like them.
__device__ int Ordered(float value) {
  const int bits = __float_as_int(value);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}

extern "C" __global__ void clear(int* largest) { *largest = 0x80000000; }

extern "C" __global__ void find(const float* x, int* largest, int n) {
  int own = 0x80000000;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) own = max(own, Ordered(x[i]));
  own = __reduce_max_sync(~0u, own);
  if (threadIdx.x % 32 == 0) atomicMax(largest, own);
}

extern "C" __global__ void spread(const int* largest, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const int bits = *largest;
  if (i < n) out[i] = __int_as_float(bits < 0 ? bits ^ 0x7fffffff : bits);
}
