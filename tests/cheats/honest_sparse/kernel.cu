// Nearly all outputs are 0, and all of them where no input is above 3: an output of zeros is right there.
constexpr int kBlock = BLOCK;

extern "C" __global__ void threshold(const float* x, float* out, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) out[i] = x[i] > 3.0f ? x[i] : 0.0f;
}
