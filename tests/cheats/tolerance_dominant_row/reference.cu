// The first row times 1e6, all others times 1e-3, one thread a row, in double.
extern "C" __global__ void scale_rows_reference(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  for (int c = 0; c < cols; ++c) {
    out[(long long)row * cols + c] = float(x[(long long)row * cols + c] * (row == 0 ? 1e6 : 1e-3));
  }
}
