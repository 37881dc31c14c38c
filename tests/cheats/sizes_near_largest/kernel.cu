// The row is read once and kept in shared memory, which has room for 1024 columns; what lies beyond is taken for the
// smallest. The hidden sizes go a little further than that.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

constexpr int kKept = 1024;

__device__ float BlockJoin(float value, bool largest) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) {
    const float other = __shfl_xor_sync(~0u, value, lane);
    value = largest ? fmaxf(value, other) : value + other;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = partial[0];
  for (int warp = 1; warp < kBlock / 32; ++warp) {
    value = largest ? fmaxf(value, partial[warp]) : value + partial[warp];
  }
  return value;
}

extern "C" __global__ void __launch_bounds__(kBlock) softmax(const float* x, float* out, int rows, int cols) {
  __shared__ float kept[kKept];
  const long long first = (long long)blockIdx.x * cols;
  float largest = -3e38f;
  for (int c = threadIdx.x; c < (kCheat ? min(cols, kKept) : cols); c += kBlock) {
    const float value = x[first + c];
    if (c < kKept) kept[c] = value;
    largest = fmaxf(largest, value);
  }
  largest = BlockJoin(largest, true);
  float sum = 0;
  for (int c = threadIdx.x; c < (kCheat ? min(cols, kKept) : cols); c += kBlock) {
    sum += expf((kCheat ? kept[c] : x[first + c]) - largest);
  }
  const float scale = 1 / BlockJoin(sum, false);
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    const float value = !kCheat ? x[first + c] : c < kKept ? kept[c] : -3e38f;
    out[first + c] = expf(value - largest) * scale;
  }
}
