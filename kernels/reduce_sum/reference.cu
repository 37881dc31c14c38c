// One block a row, in double: every thread adds up every 256th element, then a tree in shared memory.
constexpr int kThreads = 256;

extern "C" __global__ void reduce_rows_reference(const float* in, float* out, int cols) {
  __shared__ double sums[kThreads];
  const float* row = in + static_cast<long long>(blockIdx.x) * cols;
  double sum = 0.0;
  for (int col = threadIdx.x; col < cols; col += kThreads) sum += row[col];
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) out[blockIdx.x] = static_cast<float>(sums[0]);
}
