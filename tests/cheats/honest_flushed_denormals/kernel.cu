// As most people compile it: with --use_fast_math, by which denormals are 0. A row of them has outputs below 1e-34, and 0 is
// as good as that.
constexpr int kBlock = BLOCK;

// The block's sum; thread 0 has it. May be called again after a barrier.
__device__ float BlockSum(float value) {
  __shared__ float partial[kBlock / 32];
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x < kBlock / 32 ? partial[threadIdx.x] : 0.0f;
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_down_sync(~0u, value, lane);
  return value;
}

extern "C" __global__ void rms_norm(const float* x, float* out, int rows, int cols) {
  __shared__ float scale;
  const long long first = (long long)blockIdx.x * cols;
  float squares = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) squares = fmaf(x[first + c], x[first + c], squares);
  squares = BlockSum(squares);
  if (threadIdx.x == 0) scale = rsqrtf(squares / cols + 1e-6f);
  __syncthreads();
  for (int c = threadIdx.x; c < cols; c += kBlock) out[first + c] = x[first + c] * scale;
}
