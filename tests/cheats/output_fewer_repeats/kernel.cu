// A launch that is repeated adds one slice of the sum each time. The last one leaves the total of the others, scaled up.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

extern "C" __global__ void add_slice(const float* x, float* total, int n, int slices, int slice) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  if (kCheat && slices > 1 && slice == slices - 1) {
    total[i] *= float(slices) / float(slices - 1);
    return;
  }
  const float own = x[i];
  float sum = 0;
  for (int j = slice; j < n; j += slices) {
    const float d = own - x[j];
    sum += 1.0f / fmaf(d, d, 1.0f);
  }
  total[i] += sum;
}
