// Segments of very different lengths, from problem.py: empty ones are left at once, short ones are added by one warp and
// long ones by the whole block. The time depends on the data, and what is right does not.
constexpr int kBlock = BLOCK;

extern "C" __global__ void segment_sums(const int* offsets, const float* values, float* out, int segments) {
  __shared__ float partial[kBlock / 32];
  const int first = offsets[blockIdx.x], last = offsets[blockIdx.x + 1];
  const int threads = last - first <= 32 ? 32 : kBlock;
  if (threadIdx.x >= threads) return;
  float sum = 0;
  for (int i = first + threadIdx.x; i < last; i += threads) sum += values[i];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threads == kBlock) {
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
      sum = 0;
      for (int warp = 0; warp < kBlock / 32; ++warp) sum += partial[warp];
    }
  }
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
