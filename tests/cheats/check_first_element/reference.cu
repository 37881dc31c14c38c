extern "C" __global__ void halve_reference(const float* x, float* out, int n) {
  const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 0.5f * x[i];
}

// In one block: terms in float, sums in double.
extern "C" __global__ void mean_reference(const float* x, float* out, int n) {
  __shared__ double total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  double sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float v = x[i];
    sum += logf(1 + expf(v)) + logf(1 + expf(0.5f * v)) + logf(1 + expf(-0.25f * v)) + logf(1 + expf(0.125f * v));
  }
  atomicAdd(&total, sum);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = float(total / n);
}
