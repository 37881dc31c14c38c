// One thread an element: out[col][row] = in[row][col].
extern "C" __global__ void transpose_reference(const float* in, float* out, int rows, int cols) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < rows && col < cols) {
    out[static_cast<long long>(col) * rows + row] = in[static_cast<long long>(row) * cols + col];
  }
}
