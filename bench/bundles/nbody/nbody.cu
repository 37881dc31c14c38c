// Accelerations of bodies that attract each other. A thread has EACH bodies; the others come one after another, from global
// memory or through shared memory. Where SPLITS asks for it, blocks share the others, and a second kernel adds the parts up.
constexpr int kUnroll = UNROLL;

#if RSQRT
__device__ float InverseCube(float squared) {
  const float inverse = rsqrtf(squared);
  return inverse * inverse * inverse;
}
#else
__device__ float InverseCube(float squared) { return 1.0f / (squared * sqrtf(squared)); }
#endif

__device__ float4 Body(const float* bodies, int i) {
#if WIDE
  return reinterpret_cast<const float4*>(bodies)[i];
#else
  return make_float4(bodies[4 * i], bodies[4 * i + 1], bodies[4 * i + 2], bodies[4 * i + 3]);
#endif
}

struct Sum {
  float x = 0, y = 0, z = 0;

  __device__ void Add(const float4& at, const float4& other, float softening) {
    const float dx = other.x - at.x, dy = other.y - at.y, dz = other.z - at.z;
    const float pull = other.w * InverseCube(dx * dx + dy * dy + dz * dz + softening);
    x += dx * pull;
    y += dy * pull;
    z += dz * pull;
  }
};

extern "C" __global__ void __launch_bounds__(BLOCK) accelerate(const float* bodies, float* to, int n, float softening) {
  const int first = blockIdx.x * BLOCK * EACH + threadIdx.x;
  float4 at[EACH];
  Sum sums[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) at[e] = Body(bodies, min(first + e * BLOCK, n - 1));

  const int share = (n + SPLITS - 1) / SPLITS;
  const int begin = min(n, int(blockIdx.y) * share), end = min(n, begin + share);
#if TILE
  __shared__ float4 tile[TILE];
  for (int base = begin; base < end; base += TILE) {
    const int count = min(TILE, end - base);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += BLOCK) tile[i] = Body(bodies, base + i);
    __syncthreads();
#pragma unroll kUnroll
    for (int i = 0; i < count; ++i) {
      const float4 other = tile[i];
#pragma unroll
      for (int e = 0; e < EACH; ++e) sums[e].Add(at[e], other, softening);
    }
  }
#else
#pragma unroll kUnroll
  for (int i = begin; i < end; ++i) {
    const float4 other = Body(bodies, i);
#pragma unroll
    for (int e = 0; e < EACH; ++e) sums[e].Add(at[e], other, softening);
  }
#endif
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int i = first + e * BLOCK;
    if (i >= n) continue;
    float* out = to + 3 * ((long long)blockIdx.y * n + i);
    out[0] = sums[e].x;
    out[1] = sums[e].y;
    out[2] = sums[e].z;
  }
}

extern "C" __global__ void add_parts(const float* parts, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 3 * n) return;
  float sum = 0;
  for (int split = 0; split < SPLITS; ++split) sum += parts[(long long)split * 3 * n + i];
  out[i] = sum;
}
