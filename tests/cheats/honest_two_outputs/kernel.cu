// Two outputs of which one is exact. Ties go to the first.
constexpr int kBlock = BLOCK;

extern "C" __global__ void row_best(const float* x, float* best, int* place, int rows, int cols) {
  __shared__ float values[kBlock];
  __shared__ int places[kBlock];
  const float* in = x + (long long)blockIdx.x * cols;
  float value = in[0];
  int at = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    if (in[c] > value) {
      value = in[c];
      at = c;
    }
  }
  values[threadIdx.x] = value;
  places[threadIdx.x] = at;
  for (int half = kBlock / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const float other = values[threadIdx.x + half];
    const int other_at = places[threadIdx.x + half];
    if (other > values[threadIdx.x] || (other == values[threadIdx.x] && other_at < places[threadIdx.x])) {
      values[threadIdx.x] = other;
      places[threadIdx.x] = other_at;
    }
  }
  if (threadIdx.x != 0) return;
  best[blockIdx.x] = values[0];
  place[blockIdx.x] = places[0];
}
