// The transpose of x, one thread a row.
extern "C" __global__ void transpose_reference(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int c = 0; c < cols; ++c) out[(long long)c * rows + row] = x[(long long)row * cols + c];
}
