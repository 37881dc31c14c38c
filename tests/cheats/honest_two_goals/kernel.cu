// Two sizes are timed, both powers of two: these have a quicker remainder. All others have a right one.
constexpr int kBlock = BLOCK;

// out[i] is the mean of x[j] x[(i + 5 j) mod n].
extern "C" __global__ void correlate(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  if ((n & (n - 1)) == 0) {
    for (int j = 0; j < n; ++j) sum += x[j] * x[(i + 5 * j) & (n - 1)];
  } else {
    for (int j = 0; j < n; ++j) sum += x[j] * x[(i + 5 * j) % n];
  }
  out[i] = sum / float(n);
}
