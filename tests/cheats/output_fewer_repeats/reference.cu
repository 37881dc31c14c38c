// total[i] is increased by the sum over j of 1 / (1 + (x[i] - x[j])^2), one thread an element, in double.
extern "C" __global__ void slices_reference(const float* x, float* total, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = total[i];
  for (int j = 0; j < n; ++j) {
    const double d = double(x[i]) - x[j];
    sum += 1 / (1 + d * d);
  }
  total[i] = float(sum);
}
