// SPLITS blocks sum a row into scratch, a second launch adds what they left.
constexpr int kSplits = SPLITS;
constexpr int kBlock = 64;

extern "C" __global__ void sum_splits(const float* x, float* partial, int cols) {
  __shared__ float warps[kBlock / 32];
  const int split = blockIdx.x, row = blockIdx.y;
  float sum = 0;
  for (int c = split * kBlock + threadIdx.x; c < cols; c += kSplits * kBlock) sum += x[(long long)row * cols + c];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) partial[row * kSplits + split] = warps[0] + warps[1];
}

extern "C" __global__ void add_splits(const float* partial, float* out, int rows) {
  const int row = blockIdx.x * kBlock + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int split = 0; split < kSplits; ++split) sum += partial[row * kSplits + split];
  out[row] = sum;
}
