// The steps that each element needs to reach 1, one thread an element.
extern "C" __global__ void steps_reference(const int* x, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int count = 0;
  for (long long m = x[i]; m != 1; ++count) {
    if (m % 2 == 0) {
      m /= 2;
    } else {
      m = 3 * m + 1;
    }
  }
  out[i] = count;
}
