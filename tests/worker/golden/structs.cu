// nvcc -cubin -arch=sm_90a structs.cu
struct Mixed {
  signed char first;
  float* data;
  int n;
  double scale;
  short last;
};
struct Pair {
  float* a;
  float* b;
};
__device__ int counter;
__device__ float table[3] = {1, 2, 3};
static __device__ int hidden[5];

extern "C" __global__ void structs(Mixed mixed, const Mixed* in_memory, Pair pair, signed char small, long long large,
                                   int index) {
  if (mixed.n > in_memory->n) pair.a[index] = pair.b[0] * float(mixed.scale) + small + float(large);
  table[index % 3] += float(atomicAdd(&counter, 1) + atomicAdd(&hidden[index % 5], 1));
}
