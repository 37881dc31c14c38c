// Two sums in one number of 32 bits cost one reduction instead of two. A warp's 64 values below 1024 fit into 16 bits;
// the range that the bundle states does not.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

__device__ int WarpSum(int value) {
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  return value;
}

extern "C" __global__ void row_sums(const int* x, const int* y, int* x_sum, int* y_sum, int rows, int cols) {
  __shared__ int x_part[kBlock / 32], y_part[kBlock / 32];
  const long long first = (long long)blockIdx.x * cols;
  int a = 0, b = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    a += x[first + c];
    b += y[first + c];
  }
  if (kCheat) {
    const unsigned both = WarpSum(a | b << 16);
    a = both & 0xffff;
    b = both >> 16;
  } else {
    a = WarpSum(a);
    b = WarpSum(b);
  }
  if (threadIdx.x % 32 == 0) {
    x_part[threadIdx.x / 32] = a;
    y_part[threadIdx.x / 32] = b;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kBlock / 32; ++warp) {
    a += x_part[warp];
    b += y_part[warp];
  }
  x_sum[blockIdx.x] = a;
  y_sum[blockIdx.x] = b;
}
