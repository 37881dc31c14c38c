// out[i] is the sum over j of 1 / (1 + (x[i] - x[j])^2), one thread an element, in double.
extern "C" __global__ void pair_sum_reference(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int j = 0; j < n; ++j) {
    const double d = double(x[i]) - x[j];
    sum += 1 / (1 + d * d);
  }
  out[i] = float(sum);
}
