// Each row of x over its Euclidean norm, and 0 where that is 0, one thread a row, in double.
extern "C" __global__ void unit_rows_reference(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + (long long)row * cols;
  double squares = 0;
  for (int c = 0; c < cols; ++c) squares += double(in[c]) * in[c];
  for (int c = 0; c < cols; ++c) {
    out[(long long)row * cols + c] = squares > 0 ? float(in[c] / sqrt(squares)) : 0.0f;
  }
}
