// Integers of both signs in the range that the bundle states; the sums are exact.
constexpr int kBlock = BLOCK;

extern "C" __global__ void row_sum(const int* x, int* out, int rows, int cols) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  int sum = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) sum += x[(long long)blockIdx.x * cols + c];
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
