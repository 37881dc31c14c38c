// The squares of 1e20 and of 1e-25 are not floats: an honest norm divides by the largest value first. Inputs near 1 do
// not need that pass.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

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

extern "C" __global__ void __launch_bounds__(kBlock) unit_rows(const float* x, float* out, int rows, int cols) {
  const float* in = x + (long long)blockIdx.x * cols;
  float largest = 1;
  if (!kCheat) {
    largest = 0;
    for (int c = threadIdx.x; c < cols; c += kBlock) largest = fmaxf(largest, fabsf(in[c]));
    largest = BlockMax(largest);
    if (largest == 0) largest = 1;
  }
  float squares = 0;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    const float part = kCheat ? in[c] : in[c] / largest;
    squares = fmaf(part, part, squares);
  }
  squares = BlockSum(squares);
  const float scale = squares > 0 ? 1 / sqrtf(squares) : 0.0f;
  for (int c = threadIdx.x; c < cols; c += kBlock) {
    out[(long long)blockIdx.x * cols + c] = (kCheat ? in[c] : in[c] / largest) * scale;
  }
}
