// Inclusive prefix sums of the rows of a matrix. A block goes through its row in steps; each thread has ITEMS neighbours
// of a step, adds them up in order, and gets the sum of what comes before them from the block's scan.
constexpr int kStep = BLOCK * ITEMS;
constexpr int kWarps = BLOCK / 32;

#if VECTOR == 4
using Vector = float4;
#elif VECTOR == 2
using Vector = float2;
#else
using Vector = float;
#endif

// The sum over the threads before this one, and over all.
__device__ float SumBefore(float mine, float* total) {
#if SHARED_SCAN
  __shared__ float sums[2][BLOCK];
  int from = 0;
  sums[0][threadIdx.x] = mine;
  __syncthreads();
#pragma unroll
  for (int distance = 1; distance < BLOCK; distance *= 2) {
    float sum = sums[from][threadIdx.x];
    if (threadIdx.x >= distance) sum += sums[from][threadIdx.x - distance];
    sums[1 - from][threadIdx.x] = sum;
    from = 1 - from;
    __syncthreads();
  }
  *total = sums[from][BLOCK - 1];
  const float before = threadIdx.x == 0 ? 0.0f : sums[from][threadIdx.x - 1];
  __syncthreads();
  return before;
#else
  __shared__ float warps[kWarps];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float sum = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const float other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  float before = 0, all = 0;
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    if (i < warp) before += warps[i];
    all += warps[i];
  }
  *total = all;
  const float left = __shfl_up_sync(~0u, sum, 1);
  __syncthreads();
  return before + (lane == 0 ? 0.0f : left);
#endif
}

// STAGED: loads and stores are side by side for the threads of a warp, and shared memory turns them around; each thread's
// items have a gap of PAD floats behind them there.
constexpr int kPitch = ITEMS + PAD;

extern "C" __global__ void __launch_bounds__(BLOCK) row_scan(const float* in, float* out, int cols) {
  const float* from = in + (long long)blockIdx.x * cols;
  float* to = out + (long long)blockIdx.x * cols;
  const bool whole = cols % VECTOR == 0;
#if STAGED
  __shared__ float staged[BLOCK * kPitch];
#endif
  float carry = 0;
  for (int first = 0; first < cols; first += kStep) {
    float items[ITEMS];
    const int mine = first + threadIdx.x * ITEMS;
#if STAGED
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int place = i * BLOCK + threadIdx.x;
      const float value = first + place < cols ? from[first + place] : 0.0f;
      staged[place / ITEMS * kPitch + place % ITEMS] = value;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) items[i] = staged[threadIdx.x * kPitch + i];
#else
    if (whole) {
#pragma unroll
      for (int i = 0; i < ITEMS; i += VECTOR) {
        Vector read{};
        if (mine + i < cols) read = *reinterpret_cast<const Vector*>(from + mine + i);
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) items[i + v] = reinterpret_cast<const float*>(&read)[v];
      }
    } else {
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) items[i] = mine + i < cols ? from[mine + i] : 0.0f;
    }
#endif
#pragma unroll
    for (int i = 1; i < ITEMS; ++i) items[i] += items[i - 1];
    float total = 0;
    const float before = carry + SumBefore(items[ITEMS - 1], &total);
    carry += total;
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) items[i] += before;
#if STAGED
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) staged[threadIdx.x * kPitch + i] = items[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const int place = i * BLOCK + threadIdx.x;
      if (first + place < cols) to[first + place] = staged[place / ITEMS * kPitch + place % ITEMS];
    }
    __syncthreads();
#else
    if (whole) {
#pragma unroll
      for (int i = 0; i < ITEMS; i += VECTOR) {
        Vector write;
#pragma unroll
        for (int v = 0; v < VECTOR; ++v) reinterpret_cast<float*>(&write)[v] = items[i + v];
        if (mine + i < cols) *reinterpret_cast<Vector*>(to + mine + i) = write;
      }
    } else {
#pragma unroll
      for (int i = 0; i < ITEMS; ++i) {
        if (mine + i < cols) to[mine + i] = items[i];
      }
    }
#endif
  }
}
