// The bits of floats that are not negative order like unsigned integers, for which the GPU has an instruction. The fill is
// uniform from 0 to 1; nothing in the bundle says that a value can't be negative.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

__device__ float WarpMax(float value) {
  if (kCheat) return __uint_as_float(__reduce_max_sync(~0u, __float_as_uint(value)));
  for (int lane = 16; lane > 0; lane /= 2) value = fmaxf(value, __shfl_xor_sync(~0u, value, lane));
  return value;
}

extern "C" __global__ void row_max(const float* x, float* out, int rows, int cols) {
  __shared__ float largest[kBlock / 32];
  const float* in = x + (long long)blockIdx.x * cols;
  float value = in[0];
  for (int c = threadIdx.x; c < cols; c += kBlock) value = fmaxf(value, in[c]);
  value = WarpMax(value);
  if (threadIdx.x % 32 == 0) largest[threadIdx.x / 32] = value;
  __syncthreads();
  value = WarpMax(largest[threadIdx.x % (kBlock / 32)]);
  if (threadIdx.x == 0) out[blockIdx.x] = value;
}
