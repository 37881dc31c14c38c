// In two launches, with a copy of its own.
constexpr int kMost = 4194304;
__device__ float old[kMost];

extern "C" __global__ void keep_reference(const float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) old[i] = x[i];
}

extern "C" __global__ void smooth_reference(float* x, int n) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) x[i] = float(0.5 * old[i] + 0.25 * old[max(i - 1, 0)] + 0.25 * old[min(i + 1, n - 1)]);
}
