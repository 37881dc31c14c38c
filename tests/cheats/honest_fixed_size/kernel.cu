// One block a row; the row stays in registers, as the number of columns is known when it is compiled.
constexpr int kBlock = BLOCK;
constexpr int kCols = SIZE_COLS;
constexpr int kEach = (kCols + kBlock - 1) / kBlock;

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
  const long long first = (long long)blockIdx.x * kCols + threadIdx.x;
  float values[kEach];
  State state;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const bool inside = i * kBlock + threadIdx.x < kCols;
    values[i] = inside ? x[first + i * kBlock] : -3e38f;
    State one;
    one.largest = values[i];
    one.sum = inside ? 1.0f : 0.0f;
    state = Join(state, one);
  }
  state = JoinBlock(state);
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (i * kBlock + threadIdx.x < kCols) out[first + i * kBlock] = expf(values[i] - state.largest) / state.sum;
  }
}
