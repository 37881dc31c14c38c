// RMS norm of every row of a [rows, cols] matrix: out = in / sqrt(mean(in * in) + eps) * weight. fp16 in memory, fp32
// in between.
//
// The row is visited twice: for its sum of squares, then to write it. The second visit reads what the first one left in
// the cache: the packs of the first step in registers, or all of the row in shared memory if it fits. The rest is read
// from global memory again, so a row may have any length.

#include <cuda_fp16.h>

constexpr int kBlock = BLOCK;                // threads of a block
constexpr int kVector = VECTOR;              // halves of one load or store
constexpr int kUnroll = UNROLL;              // packs of a step: a thread loads them all before it uses the first
constexpr int kRowsPerBlock = ROWS_A_BLOCK;  // rows a block works on, one after the other
enum Cache { kNoCache = 0, kSharedCache = 1, kRegisterCache = 2 };
constexpr Cache kCache = static_cast<Cache>(CACHE);
constexpr int kSharedHalves = 32768;     // the longest row that goes to shared memory: kernel.toml sizes it
constexpr int kStep = kBlock * kUnroll;  // packs the block visits at once
constexpr int kWarps = kBlock / 32;

template <int kWidth>
struct alignas(kWidth * sizeof(__half)) Pack {
  __half at[kWidth];
};

// What is beyond the end of a row: it adds nothing to a sum.
template <int kWidth>
__device__ Pack<kWidth> NothingThere() {
  Pack<kWidth> pack;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) pack.at[k] = __float2half_rn(0.0f);
  return pack;
}

// Where the first visit of a row leaves it for the second.
template <int kWidth>
struct Row {
  const Pack<kWidth>* global;
  Pack<kWidth>* shared;
  int count;  // packs of the row
  bool fits_shared;
  Pack<kWidth> held[kUnroll];  // the first step; unused, and so no registers, unless kCache is kRegisterCache
};

template <int kWidth>
__device__ void Load(const Pack<kWidth>* from, int first, int count, Pack<kWidth> (&packs)[kUnroll]) {
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int i = first + u * kBlock;
    packs[u] = i < count ? from[i] : NothingThere<kWidth>();
  }
}

template <int kWidth>
__device__ float SumOfSquares(const Pack<kWidth> (&packs)[kUnroll]) {
  float sum = 0.0f;
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      const float value = __half2float(packs[u].at[k]);
      sum += value * value;
    }
  }
  return sum;
}

// This thread's share of the row, which goes to the cache on the way.
template <int kWidth>
__device__ float ReadRow(Row<kWidth>& row) {
  float sum = 0.0f;
  int first = threadIdx.x;
  if constexpr (kCache == kRegisterCache) {
    Load(row.global, first, row.count, row.held);
    sum += SumOfSquares(row.held);
    first += kStep;
  }
  // The compiler's own unrolling is off: kUnroll alone says how many packs make a step.
#pragma unroll 1
  for (; first < row.count; first += kStep) {
    Pack<kWidth> loaded[kUnroll];
    Load(row.global, first, row.count, loaded);
    if (kCache == kSharedCache && row.fits_shared) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int i = first + u * kBlock;
        if (i < row.count) row.shared[i] = loaded[u];
      }
    }
    sum += SumOfSquares(loaded);
  }
  return sum;
}

// One step of packs that starts at `first`, scaled and written.
template <int kWidth>
__device__ void WriteStep(const Pack<kWidth> (&packs)[kUnroll], const Pack<kWidth>* weight, Pack<kWidth>* out,
                          int first, int count, float scale) {
  Pack<kWidth> weights[kUnroll];
  Load(weight, first, count, weights);
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int i = first + u * kBlock;
    Pack<kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) {
      result.at[k] = __float2half_rn(__half2float(packs[u].at[k]) * scale * __half2float(weights[u].at[k]));
    }
    if (i < count) out[i] = result;
  }
}

// The second visit. A thread only reads what it wrote to shared memory itself: no barrier is needed in between.
template <int kWidth>
__device__ void WriteRow(const Row<kWidth>& row, const Pack<kWidth>* weight, Pack<kWidth>* out, float scale) {
  int first = threadIdx.x;
  if constexpr (kCache == kRegisterCache) {
    WriteStep(row.held, weight, out, first, row.count, scale);
    first += kStep;
  }
#pragma unroll 1
  for (; first < row.count; first += kStep) {
    Pack<kWidth> loaded[kUnroll];
    if (kCache == kSharedCache && row.fits_shared) {
      Load(row.shared, first, row.count, loaded);
    } else {
      Load(row.global, first, row.count, loaded);
    }
    WriteStep(loaded, weight, out, first, row.count, scale);
  }
}

__device__ float WarpSum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The sum over the block, in every thread. Two arrays take turns: while some threads still read the one of this row,
// others may already write that of the next, and the barrier in between keeps them from getting further ahead.
__device__ float BlockSum(float value, int turn) {
  __shared__ float of_warp[2][kWarps];
  const int lane = threadIdx.x % 32;
  value = WarpSum(value);
  if (lane == 0) of_warp[turn % 2][threadIdx.x / 32] = value;
  __syncthreads();
  return WarpSum(lane < kWarps ? of_warp[turn % 2][lane] : 0.0f);
}

template <int kWidth>
__device__ void NormaliseRows(const __half* in, const __half* weight, __half* out, int rows, int cols, float eps,
                              __half* shared) {
#pragma unroll 1
  for (int turn = 0; turn < kRowsPerBlock; ++turn) {
    const int index = blockIdx.x * kRowsPerBlock + turn;
    if (index >= rows) return;
    const long long start = static_cast<long long>(index) * cols;
    Row<kWidth> row;
    row.global = reinterpret_cast<const Pack<kWidth>*>(in + start);
    row.shared = reinterpret_cast<Pack<kWidth>*>(shared);
    row.count = cols / kWidth;
    row.fits_shared = cols <= kSharedHalves;
    const float sum = BlockSum(ReadRow(row), turn);
    const float scale = rsqrtf(sum / cols + eps);
    WriteRow(row, reinterpret_cast<const Pack<kWidth>*>(weight), reinterpret_cast<Pack<kWidth>*>(out + start), scale);
  }
}

extern "C" __global__ void __launch_bounds__(kBlock)
    rmsnorm(const __half* __restrict__ in, const __half* __restrict__ weight, __half* __restrict__ out, int rows,
            int cols, float eps) {
  extern __shared__ __align__(16) unsigned char shared[];
  __half* cache = reinterpret_cast<__half*>(shared);
  // Every row starts on a vector boundary only where the length of a row is a multiple of the vector.
  if (cols % kVector == 0) {
    NormaliseRows<kVector>(in, weight, out, rows, cols, eps, cache);
  } else {
    NormaliseRows<1>(in, weight, out, rows, cols, eps, cache);
  }
}
