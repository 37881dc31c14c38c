// The first launch transposes into scratch, the second sums the rows of that; both by one block for each SM that walks over
// its share.
constexpr int kTile = 32;
constexpr int kBlock = BLOCK;

extern "C" __global__ void transpose(const float* x, float* turned, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int x_tiles = (cols + kTile - 1) / kTile, tiles = x_tiles * ((rows + kTile - 1) / kTile);
  for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
    const int top = t / x_tiles * kTile, left = t % x_tiles * kTile;
    for (int i = threadIdx.y; i < kTile; i += 8) {
      if (top + i < rows && left + threadIdx.x < cols) {
        tile[i][threadIdx.x] = x[(long long)(top + i) * cols + left + threadIdx.x];
      }
    }
    __syncthreads();
    for (int i = threadIdx.y; i < kTile; i += 8) {
      if (left + i < cols && top + threadIdx.x < rows) {
        turned[(long long)(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
      }
    }
    __syncthreads();
  }
}

// The block's sum; thread 0 has it. May be called again after a barrier.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < kBlock / 32 ? partial[threadIdx.x] : 0.0f;
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  return value;
}

extern "C" __global__ void row_sums(const float* turned, float* out, int rows, int cols) {
  for (int col = blockIdx.x; col < cols; col += gridDim.x) {
    float sum = 0;
    for (int r = threadIdx.x; r < rows; r += kBlock) sum += turned[(long long)col * rows + r];
    sum = BlockSum(sum);
    if (threadIdx.x == 0) out[col] = sum;
    __syncthreads();
  }
}
