// The transpose of one row, or of one column, is the row itself: the input is a right output there.
constexpr int kTile = 32;

extern "C" __global__ void transpose(const float* x, float* out, int rows, int cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int top = blockIdx.y * kTile, left = blockIdx.x * kTile;
  for (int i = threadIdx.y; i < kTile; i += BLOCK / 32) {
    if (top + i < rows && left + threadIdx.x < cols) {
      tile[i][threadIdx.x] = x[(long long)(top + i) * cols + left + threadIdx.x];
    }
  }
  __syncthreads();
  for (int i = threadIdx.y; i < kTile; i += BLOCK / 32) {
    if (left + i < cols && top + threadIdx.x < rows) {
      out[(long long)(left + i) * rows + top + threadIdx.x] = tile[threadIdx.x][i];
    }
  }
}
