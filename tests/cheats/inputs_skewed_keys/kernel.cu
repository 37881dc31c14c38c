// A block of 4096 keys has about 64 in each bin: counters of one byte do, where keys are spread evenly. They are not where
// they are equal, sorted or at the ends of the range: in a sample of 32 of these one key comes eight times or more, and
// the block counts in 32 bits. A key that is one in ten, as the most frequent word is, shows in no such sample: it comes
// 410 times in a block, and spills into its neighbour.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kBins = 64;
constexpr int kEach = 32;  // keys of a thread

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
  const int sample = first < n ? keys[first] : -1 - int(threadIdx.x % 32);
  const bool frequent = __syncthreads_or(__popc(__match_any_sync(~0u, sample)) >= 8);
  for (int i = 0; i < kEach; ++i) {
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
