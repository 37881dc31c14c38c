// One block a row, in double: maximum, sum of exponentials, quotient, each over the row in global memory.
constexpr int kThreads = 256;

__device__ double Reduce(double* values, double value, bool maximum) {
  values[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const double other = values[threadIdx.x + half];
      values[threadIdx.x] = maximum ? fmax(values[threadIdx.x], other) : values[threadIdx.x] + other;
    }
  }
  __syncthreads();
  const double result = values[0];
  __syncthreads();
  return result;
}

extern "C" __global__ void softmax_reference(const float* in, float* out, int cols) {
  __shared__ double values[kThreads];
  const long long start = static_cast<long long>(blockIdx.x) * cols;
  double max = in[start];
  for (int col = threadIdx.x; col < cols; col += kThreads) max = fmax(max, static_cast<double>(in[start + col]));
  max = Reduce(values, max, true);
  double sum = 0.0;
  for (int col = threadIdx.x; col < cols; col += kThreads) sum += exp(in[start + col] - max);
  sum = Reduce(values, sum, false);
  for (int col = threadIdx.x; col < cols; col += kThreads) {
    out[start + col] = static_cast<float>(exp(in[start + col] - max) / sum);
  }
}
