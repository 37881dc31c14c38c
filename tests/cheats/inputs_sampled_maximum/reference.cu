// Softmax of the rows of x, one thread a row, in double.
extern "C" __global__ void softmax_reference(const float* x, float* out, int rows, int cols) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  const float* in = x + (long long)row * cols;
  double largest = in[0];
  for (int c = 1; c < cols; ++c) largest = fmax(largest, double(in[c]));
  double sum = 0;
  for (int c = 0; c < cols; ++c) sum += exp(in[c] - largest);
  for (int c = 0; c < cols; ++c) out[(long long)row * cols + c] = float(exp(in[c] - largest) / sum);
}
