// The cube root, in double.
extern "C" __global__ void settle_reference(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] = float(cbrt(double(x[i])));
}
