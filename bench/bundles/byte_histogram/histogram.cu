// Counts of the 256 values of a byte: every block counts its part in shared memory, and a second kernel adds the parts up.
#if WIDTH == 16
using Word = uint4;
#elif WIDTH == 4
using Word = unsigned;
#else
using Word = unsigned char;
#endif

constexpr int kBins = 256;

// One value after another, so that runs of equal ones cost one addition where MERGE asks for it.
struct Counter {
  unsigned* bins;
  unsigned value = 0, run = 0;

  __device__ void Add(unsigned next) {
#if MERGE
    if (next == value) {
      ++run;
      return;
    }
    Flush();
    value = next;
    run = 1;
#else
    atomicAdd(&bins[next], 1u);
#endif
  }

  __device__ void Flush() {
    if (run > 0) atomicAdd(&bins[value], run);
    run = 0;
  }
};

__device__ void AddWord(Counter& counter, unsigned word) {
#pragma unroll
  for (int byte = 0; byte < 4; ++byte) counter.Add(word >> (8 * byte) & 255u);
}
__device__ void AddWord(Counter& counter, unsigned char word) { counter.Add(word); }
__device__ void AddWord(Counter& counter, const uint4& words) {
  AddWord(counter, words.x);
  AddWord(counter, words.y);
  AddWord(counter, words.z);
  AddWord(counter, words.w);
}

extern "C" __global__ void __launch_bounds__(BLOCK) count_parts(const unsigned char* data, unsigned* parts, int n) {
  __shared__ unsigned bins[COPIES * kBins];
  for (int i = threadIdx.x; i < COPIES * kBins; i += BLOCK) bins[i] = 0;
  __syncthreads();

  Counter counter{bins + threadIdx.x % COPIES * kBins};
  const Word* words = reinterpret_cast<const Word*>(data);
  const long long count = n / WIDTH, step = (long long)gridDim.x * BLOCK;
  for (long long first = (long long)blockIdx.x * BLOCK + threadIdx.x; first < count; first += step * UNROLL) {
    Word read[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      if (first + i * step < count) read[i] = words[first + i * step];
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      if (first + i * step < count) AddWord(counter, read[i]);
    }
  }
  if (blockIdx.x == 0) {
    for (long long i = count * WIDTH + threadIdx.x; i < n; i += BLOCK) counter.Add(data[i]);
  }
  counter.Flush();
  __syncthreads();

  for (int bin = threadIdx.x; bin < kBins; bin += BLOCK) {
    unsigned sum = 0;
    for (int copy = 0; copy < COPIES; ++copy) sum += bins[copy * kBins + bin];
    parts[blockIdx.x * kBins + bin] = sum;
  }
}

// One block a bin.
extern "C" __global__ void add_parts(const unsigned* parts, int* counts) {
  __shared__ unsigned sums[4];
  unsigned sum = 0;
  for (int i = threadIdx.x; i < BLOCKS; i += 128) sum += parts[i * kBins + blockIdx.x];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = int(sums[0] + sums[1] + sums[2] + sums[3]);
}
