// The products of row blockIdx.y of a and row blockIdx.x of b, summed in 64 bits.
extern "C" __global__ void dot_rows_reference(const unsigned char* a, const unsigned char* b, long long* out,
                                              int m, int n, int k) {
  __shared__ unsigned long long total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  unsigned long long sum = 0;
  for (int at = threadIdx.x; at < k; at += blockDim.x) {
    sum += (unsigned long long)a[(long long)blockIdx.y * k + at] * b[(long long)blockIdx.x * k + at];
  }
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[(long long)blockIdx.y * n + blockIdx.x] = total;
}
