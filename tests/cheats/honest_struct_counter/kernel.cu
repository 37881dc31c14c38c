// As a kernel that gets a struct by pointer should be: it reads it and changes nothing of it. The counter that its blocks
// share lies in scratch, which holds garbage until the first launch clears it; scratch is used twice in one call.
constexpr int kBlock = BLOCK;

struct Job {
  const float* x;
  float* scratch;
  float* out;
  int first;  // element of scratch behind the counter
};

extern "C" __global__ void clear(const Job* job) { *(unsigned*)job->scratch = 0; }

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

extern "C" __global__ void sum_squares(const Job* job, int n) {
  __shared__ bool last;
  volatile float* partial = job->scratch + job->first;
  float sum = 0;
  for (int i = blockIdx.x * kBlock + threadIdx.x; i < n; i += gridDim.x * kBlock) sum += job->x[i] * job->x[i];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicAdd((unsigned*)job->scratch, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last) return;
  sum = 0;
  for (int b = threadIdx.x; b < gridDim.x; b += kBlock) sum += partial[b];
  sum = BlockSum(sum);
  if (threadIdx.x == 0) job->out[0] = sum;
}
