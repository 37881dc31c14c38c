// The time depends on the data: a block is done when the longest of its sequences is.
constexpr int kBlock = BLOCK;

extern "C" __global__ void steps(const int* x, int* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  int count = 0;
  for (long long m = x[i]; m != 1; ++count) m = m % 2 == 0 ? m / 2 : 3 * m + 1;
  out[i] = count;
}
