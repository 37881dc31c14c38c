// One block a bin.
extern "C" __global__ void histogram_reference(const unsigned char* data, int* counts, int n) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  int mine = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) mine += data[i] == blockIdx.x;
  atomicAdd(&sum, mine);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}
