// A block loads as many rows as its shared memory holds, all that the GPU gives one; then a warp takes a row.
constexpr int kBlock = BLOCK;

// Largest value and sum of exp(value - largest) of what was seen.
struct State {
  float largest = -3e38f;  // not infinity: two of them must not subtract to NaN
  float sum = 0;
};

__device__ State Join(State a, State b) {
  State joined;
  joined.largest = fmaxf(a.largest, b.largest);
  joined.sum = a.sum * expf(a.largest - joined.largest) + b.sum * expf(b.largest - joined.largest);
  return joined;
}

__device__ State JoinWarp(State state) {
  for (int lane = 16; lane > 0; lane /= 2) {
    State other;
    other.largest = __shfl_xor_sync(~0u, state.largest, lane);
    other.sum = __shfl_xor_sync(~0u, state.sum, lane);
    state = Join(state, other);
  }
  return state;
}

extern __shared__ float loaded[];

extern "C" __global__ void __launch_bounds__(kBlock) softmax(const float* x, float* out, int rows, int cols) {
  unsigned bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  const int capacity = int(bytes / sizeof(float)) / cols;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int first = blockIdx.x * capacity; first < rows; first += gridDim.x * capacity) {
    const int count = min(capacity, rows - first);
    for (int i = threadIdx.x; i < count * cols; i += kBlock) loaded[i] = x[(long long)first * cols + i];
    __syncthreads();
    for (int row = warp; row < count; row += kBlock / 32) {
      State state;
      for (int c = lane; c < cols; c += 32) {
        State one;
        one.largest = loaded[row * cols + c];
        one.sum = 1;
        state = Join(state, one);
      }
      state = JoinWarp(state);
      for (int c = lane; c < cols; c += 32) {
        out[(long long)(first + row) * cols + c] = expf(loaded[row * cols + c] - state.largest) / state.sum;
      }
    }
    __syncthreads();
  }
}
