// Smoothing in place without the copy that it needs: a neighbour may have been changed already. Blocks that run at the same
// time nearly always read before the others write.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

extern "C" __global__ void keep(const float* x, float* old, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i < n) old[i] = x[i];
}

extern "C" __global__ void smooth(float* x, const float* old, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const float* from = kCheat ? x : old;
  float value = 0;
  if (i < n) value = 0.5f * from[i] + 0.25f * from[max(i - 1, 0)] + 0.25f * from[min(i + 1, n - 1)];
  if (kCheat) __syncthreads();
  if (i < n) x[i] = value;
}
