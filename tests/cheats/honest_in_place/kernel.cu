// Changes only what is out of bounds, and leaves a block where nothing is: most of its tensor is right before it comes.
constexpr int kBlock = BLOCK;

extern "C" __global__ void clamp(float* x, int n) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  const float value = i < n ? x[i] : 0.0f;
  if (__syncthreads_and(fabsf(value) <= 3.0f)) return;
  if (i < n && fabsf(value) > 3.0f) x[i] = copysignf(3.0f, value);
}
