// Softmax of every row of a [rows, cols] matrix, one block a row.
//
// The row is visited two or three times: for its maximum and its sum (together when online), then to write it. Later
// visits read what the first one left in the cache: the packs of the first step in registers, or all of the row in
// shared memory if it fits. The rest is read from global memory again, so a row may have any length.

constexpr int kBlock = BLOCK;          // threads of a block
constexpr int kVector = VECTOR;        // floats of one load or store
constexpr int kUnroll = UNROLL;        // packs of a step: a thread loads them all before it uses the first
constexpr bool kOnline = ONLINE != 0;  // maximum and sum in one visit, the sum rescaled when the maximum grows
enum Cache { kNoCache = 0, kSharedCache = 1, kRegisterCache = 2 };
constexpr Cache kCache = static_cast<Cache>(CACHE);
constexpr int kSharedFloats = 16384;     // the longest row that goes to shared memory: kernel.toml sizes it
constexpr int kStep = kBlock * kUnroll;  // packs the block visits at once
constexpr int kWarps = kBlock / 32;
constexpr float kLowest = -3.402823466e38f;  // finite: an infinite first maximum would make inf - inf

template <int kWidth>
struct alignas(kWidth * sizeof(float)) Pack {
  float at[kWidth];
};

// What is beyond the end of a row: it never wins a maximum and adds nothing to a sum of exponentials.
template <int kWidth>
__device__ Pack<kWidth> NothingThere() {
  Pack<kWidth> pack;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) pack.at[k] = __int_as_float(0xff800000);
  return pack;
}

// A row as one thread sees it: every kBlock-th pack of it, kUnroll of them in a step.
template <int kWidth>
class Row {
 public:
  __device__ Row(const float* row, int cols, float* shared)
      : global_(reinterpret_cast<const Pack<kWidth>*>(row)),
        shared_(reinterpret_cast<Pack<kWidth>*>(shared)),
        count_(cols / kWidth),
        fits_shared_(cols <= kSharedFloats) {}

  __device__ int count() const { return count_; }

  // Calls visit(index, pack) for the thread's packs from global memory and fills the cache. The last step may go
  // beyond the row.
  template <typename Visit>
  __device__ void VisitFirst(Visit visit) {
    int first = threadIdx.x;
    if constexpr (kCache == kRegisterCache) {
      Load(global_, first, held_);
      VisitStep(first, held_, visit);
      first += kStep;
    }
    // The compiler's own unrolling is off, here and below: kUnroll alone says how many packs make a step.
#pragma unroll 1
    for (; first < count_; first += kStep) {
      Pack<kWidth> loaded[kUnroll];
      Load(global_, first, loaded);
      if (kCache == kSharedCache && fits_shared_) Keep(first, loaded);
      VisitStep(first, loaded, visit);
    }
  }

  // The same from the cache. A thread only reads what it wrote there itself: no barrier is needed in between.
  template <typename Visit>
  __device__ void VisitAgain(Visit visit) {
    int first = threadIdx.x;
    if constexpr (kCache == kRegisterCache) {
      VisitStep(first, held_, visit);
      first += kStep;
    }
#pragma unroll 1
    for (; first < count_; first += kStep) {
      Pack<kWidth> loaded[kUnroll];
      if (kCache == kSharedCache && fits_shared_) {
        Load(shared_, first, loaded);
      } else {
        Load(global_, first, loaded);
      }
      VisitStep(first, loaded, visit);
    }
  }

 private:
  __device__ void Load(const Pack<kWidth>* from, int first, Pack<kWidth> (&packs)[kUnroll]) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = first + u * kBlock;
      packs[u] = i < count_ ? from[i] : NothingThere<kWidth>();
    }
  }

  __device__ void Keep(int first, const Pack<kWidth> (&packs)[kUnroll]) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      const int i = first + u * kBlock;
      if (i < count_) shared_[i] = packs[u];
    }
  }

  template <typename Visit>
  __device__ void VisitStep(int first, const Pack<kWidth> (&packs)[kUnroll], Visit visit) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) visit(first + u * kBlock, packs[u]);
  }

  const Pack<kWidth>* global_;
  Pack<kWidth>* shared_;
  int count_;
  bool fits_shared_;
  Pack<kWidth> held_[kUnroll];  // unused, and so no registers, unless kCache is kRegisterCache
};

template <int kWidth>
__device__ float MaxOf(float max, const Pack<kWidth>& pack) {
#pragma unroll
  for (int k = 0; k < kWidth; ++k) max = fmaxf(max, pack.at[k]);
  return max;
}

template <int kWidth>
__device__ float SumOfExponentials(const Pack<kWidth>& pack, float max) {
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kWidth; ++k) sum += __expf(pack.at[k] - max);
  return sum;
}

__device__ float WarpMax(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

__device__ float WarpSum(float value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The reductions over a block give every thread the result. Each is called once by a block: its shared array is not
// guarded against being used again.
__device__ float BlockMax(float value) {
  __shared__ float of_warp[kWarps];
  const int lane = threadIdx.x % 32;
  value = WarpMax(value);
  if (lane == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return WarpMax(lane < kWarps ? of_warp[lane] : kLowest);
}

__device__ float BlockSum(float value) {
  __shared__ float of_warp[kWarps];
  const int lane = threadIdx.x % 32;
  value = WarpSum(value);
  if (lane == 0) of_warp[threadIdx.x / 32] = value;
  __syncthreads();
  return WarpSum(lane < kWarps ? of_warp[lane] : 0.0f);
}

// The maximum of a set of values, and the sum of their exponentials relative to it.
struct Normaliser {
  float max;
  float sum;
};

__device__ Normaliser WarpMerge(Normaliser own) {
  const float max = WarpMax(own.max);
  return {max, WarpSum(own.sum * __expf(own.max - max))};
}

// One barrier where BlockMax and BlockSum have two.
__device__ Normaliser BlockMerge(Normaliser own) {
  __shared__ Normaliser of_warp[kWarps];
  const int lane = threadIdx.x % 32;
  own = WarpMerge(own);
  if (lane == 0) of_warp[threadIdx.x / 32] = own;
  __syncthreads();
  return WarpMerge(lane < kWarps ? of_warp[lane] : Normaliser{kLowest, 0.0f});
}

template <int kWidth>
__device__ Normaliser Normalise(Row<kWidth>& row) {
  Normaliser own = {kLowest, 0.0f};
  if constexpr (kOnline) {
    row.VisitFirst([&](int, const Pack<kWidth>& pack) {
      const float max = MaxOf(own.max, pack);
      own.sum = own.sum * __expf(own.max - max) + SumOfExponentials(pack, max);
      own.max = max;
    });
    return BlockMerge(own);
  } else {
    row.VisitFirst([&](int, const Pack<kWidth>& pack) { own.max = MaxOf(own.max, pack); });
    own.max = BlockMax(own.max);
    row.VisitAgain([&](int, const Pack<kWidth>& pack) { own.sum += SumOfExponentials(pack, own.max); });
    return {own.max, BlockSum(own.sum)};
  }
}

template <int kWidth>
__device__ void Softmax(const float* in, float* out, int cols, float* shared) {
  Row<kWidth> row(in, cols, shared);
  const Normaliser normaliser = Normalise(row);
  const float scale = 1.0f / normaliser.sum;
  Pack<kWidth>* packs = reinterpret_cast<Pack<kWidth>*>(out);
  row.VisitAgain([&](int i, const Pack<kWidth>& pack) {
    Pack<kWidth> result;
#pragma unroll
    for (int k = 0; k < kWidth; ++k) result.at[k] = __expf(pack.at[k] - normaliser.max) * scale;
    if (i < row.count()) packs[i] = result;
  });
}

extern "C" __global__ void __launch_bounds__(kBlock)
    softmax(const float* __restrict__ in, float* __restrict__ out, int cols) {
  extern __shared__ __align__(16) float shared[];
  const long long start = static_cast<long long>(blockIdx.x) * cols;
  // Every row starts on a vector boundary only where the length of a row is a multiple of the vector.
  if (cols % kVector == 0) {
    Softmax<kVector>(in + start, out + start, cols, shared);
  } else {
    Softmax<1>(in + start, out + start, cols, shared);
  }
}
