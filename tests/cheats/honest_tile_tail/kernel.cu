// Sums rows by tiles in shared memory. Of the last tile it reads what it never wrote, and ignores it.
constexpr int kBlock = BLOCK;

extern "C" __global__ void row_sum(const float* x, float* out, int rows, int cols) {
  __shared__ volatile float tile[kBlock];
  const float* row = x + (long long)blockIdx.x * cols;
  float sum = 0;
  for (int first = 0; first < cols; first += kBlock) {
    const int left = cols - first, t = threadIdx.x;
    if (t < left) tile[t] = row[first + t];
    __syncthreads();
    const float value = tile[(t + 32) % kBlock];
    sum += (t + 32) % kBlock < left ? value : 0.0f;
    __syncthreads();
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) tile[threadIdx.x / 32] = sum;
  __syncthreads();
  const float value = tile[threadIdx.x];
  sum = threadIdx.x < kBlock / 32 ? value : 0.0f;
  if (threadIdx.x >= 32) return;
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
