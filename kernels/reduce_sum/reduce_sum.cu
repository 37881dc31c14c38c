// Sums the rows of a [rows, cols] matrix. A row is split over kSplits blocks; with more than one, each block leaves its
// part in `partial` and a second launch adds the parts in a fixed order, so that the result has the same bits every
// time.

constexpr int kBlock = BLOCK;    // threads of a block
constexpr int kVector = VECTOR;  // floats of one load
constexpr int kUnroll = UNROLL;  // loads a thread issues together
constexpr int kSplits = SPLITS;  // blocks of a row
constexpr int kWarps = kBlock / 32;

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

template <int kWidth>
__device__ float SumOf(const Pack<kWidth>& pack) {
  float sum = pack.at[0];
#pragma unroll
  for (int k = 1; k < kWidth; ++k) sum += pack.at[k];
  return sum;
}

// This thread's share of packs[begin, end).
template <int kWidth>
__device__ float ThreadSum(const Pack<kWidth>* packs, int begin, int end) {
  float sum = 0.0f;
  // The compiler's own unrolling is off: kUnroll alone says how many loads go together.
#pragma unroll 1
  for (int first = begin + threadIdx.x; first < end; first += kBlock * kUnroll) {
    Pack<kWidth> loaded[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = first + u * kBlock;
      loaded[u] = i < end ? packs[i] : Pack<kWidth>{};
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) sum += SumOf(loaded[u]);
  }
  return sum;
}

// The part of a row that belongs to one of its kSplits blocks. The last parts of a short row are empty: their sum is 0.
template <int kWidth>
__device__ float SplitSum(const float* row, int cols, int split) {
  const int packs = cols / kWidth;
  const int share = (packs + kSplits - 1) / kSplits;
  const int begin = min(split * share, packs);
  const int end = min(begin + share, packs);
  return ThreadSum(reinterpret_cast<const Pack<kWidth>*>(row), begin, end);
}

__device__ float WarpSum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The sum over the block, in every thread of the first warp.
__device__ float BlockSum(float value) {
  __shared__ float of_warp[kWarps];
  value = WarpSum(value);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return WarpSum(threadIdx.x < kWarps ? of_warp[threadIdx.x] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(kBlock) reduce_rows(const float* __restrict__ in, float* __restrict__ out,
                                                                 float* __restrict__ partial, int rows, int cols) {
  const int row = blockIdx.x / kSplits;
  const int split = blockIdx.x % kSplits;
  const float* start = in + static_cast<long long>(row) * cols;
  // Every row starts on a vector boundary only where the length of a row is a multiple of the vector.
  const float sum = cols % kVector == 0 ? SplitSum<kVector>(start, cols, split) : SplitSum<1>(start, cols, split);
  const float total = BlockSum(sum);
  if (threadIdx.x == 0) {
    if (kSplits == 1) {
      out[row] = total;
    } else {
      partial[static_cast<long long>(split) * rows + row] = total;
    }
  }
}

extern "C" __global__ void add_partials(const float* __restrict__ partial, float* __restrict__ out, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0.0f;
#pragma unroll
  for (int split = 0; split < kSplits; ++split) sum += partial[static_cast<long long>(split) * rows + row];
  out[row] = sum;
}
