// The sum over j of 1 / (1 + exp(x[j] - x[i])), one thread an element, in double.
extern "C" __global__ void soft_rank_reference(const float* x, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double sum = 0;
  for (int j = 0; j < n; ++j) sum += 1 / (1 + exp(double(x[j]) - x[i]));
  out[i] = float(sum);
}
