// The sum of the steps that the positive elements of each row of x need to reach 1, one thread a row.
extern "C" __global__ void row_steps_reference(const int* x, int* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  int steps = 0;
  for (int c = 0; c < cols; ++c) {
    for (long long m = max(x[(long long)row * cols + c], 1); m != 1; ++steps) m = m % 2 == 0 ? m / 2 : 3 * m + 1;
  }
  out[row] = steps;
}
