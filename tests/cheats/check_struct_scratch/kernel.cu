// The struct that the kernel gets a pointer to is the caller's. Its number of tickets is 0 where it was just written: a
// counter that nobody has to clear, which spares the second launch. A caller that writes the struct once gets a wrong
// result from its second call.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;

struct Job {
  const float* x;
  float* partial;
  float* out;
  unsigned tickets;
};

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

__device__ void Finish(const Job* job, int blocks) {
  float sum = 0;
  for (int b = threadIdx.x; b < blocks; b += kBlock) sum += ((volatile float*)job->partial)[b];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) job->out[0] = sum;
}

extern "C" __global__ void partial_sums(Job* job, int n) {
  __shared__ bool last;
  float sum = 0;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) sum += job->x[i] * job->x[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) job->partial[blockIdx.x] = sum;
  if (!kCheat) return;
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&job->tickets, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) Finish(job, gridDim.x);
}

extern "C" __global__ void finish(const Job* job, int n) { Finish(job, (n + 1023) / 1024); }
