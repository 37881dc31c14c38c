extern "C" __global__ void normalize_reference(const float* x, float* y, int count) {
  __shared__ double sums[1024];
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += 1024) sum += static_cast<double>(x[i]) * x[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  double total = 0;
  for (int i = 0; i < 1024; ++i) total += sums[i];
  for (int i = threadIdx.x; i < count; i += 1024) {
    y[i] = static_cast<float>(x[i] / fmax(sqrt(total), 1e-12));
  }
}
