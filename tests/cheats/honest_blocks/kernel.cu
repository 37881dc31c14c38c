// One block a row, also when most of its threads have no column.
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

// The block's state; every thread has it.
__device__ State JoinBlock(State state) {
  __shared__ float largest[kBlock / 32], sum[kBlock / 32];
  state = JoinWarp(state);
  if (threadIdx.x % 32 == 0) {
    largest[threadIdx.x / 32] = state.largest;
    sum[threadIdx.x / 32] = state.sum;
  }
  __syncthreads();
  State joined;
  const int lane = threadIdx.x % 32;
  if (lane < kBlock / 32) {
    joined.largest = largest[lane];
    joined.sum = sum[lane];
  }
  return JoinWarp(joined);
}

extern "C" __global__ void __launch_bounds__(kBlock) softmax(const float* x, float* out, int rows, int cols) {
  const float* in = x + (long long)blockIdx.x * cols;
  State state;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    State one;
    one.largest = in[c];
    one.sum = 1;
    state = Join(state, one);
  }
  state = JoinBlock(state);
  const float scale = 1 / state.sum;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    out[(long long)blockIdx.x * cols + c] = expf(in[c] - state.largest) * scale;
  }
}
