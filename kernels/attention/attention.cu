// Scaled dot-product attention, forward, not causal: out = softmax(q k^T * scale) v for each head of [B, H, S, 64] fp16
// tensors.
//
// A block owns TILE_M queries of one head and walks over one of KV_SPLITS shares of the keys, TILE_N keys a step, with
// an online softmax: per row a running maximum, a running sum and an unnormalised accumulator, all fp32. Two namespaces
// share the copies and the output: plain FMAs (MMA=0, namespace scalar) and tensor cores (namespace tensor), there by
// mma.sync of single warps (MMA=1) or by wgmma of warpgroups (MMA=2, sm_90a). Several shares are merged in a fixed
// order, so that the result is the same bits every time: by attention_combine, from states in `partial` (MERGE=0), or
// by the blocks themselves, which are a cluster then (MERGE=1, sm_90).
#include <cuda_fp16.h>

enum Path { kScalar = 0, kMma = 1, kWgmma = 2 };
constexpr Path kPath = static_cast<Path>(MMA);
constexpr int kTileM = TILE_M;                      // queries a block
constexpr int kTileN = TILE_N;                      // keys a step
constexpr int kWarps = WARPS;                       // warps a block
constexpr int kShares = KV_SPLITS;                  // of the keys, one block each
constexpr int kCluster = MERGE != 0 ? kShares : 1;  // blocks that merge their shares among themselves
constexpr int kSplits = kShares / kCluster;         // shares that attention_combine merges
constexpr int kVector = VECTOR;                     // halves a thread reads from keys and values at once
constexpr bool kSpread = SPREAD != 0;               // tiles in shared memory are spread over the banks
constexpr int kStages = STAGES;              // tiles of a step in shared memory; 0: keys go straight to registers
constexpr bool kOverlap = OVERLAP != 0;      // a step's scores are computed together with the values of the one before
constexpr bool kExchange = EXCHANGE != 0;    // warps that share rows exchange weights, not sums
constexpr int kBlocksPerSm = BLOCKS_PER_SM;  // blocks an SM that the registers must allow
#if FIXED_SIZE  // for the preprocessor, so that without it there is one build for all sizes
constexpr int kFixedS = SIZE_S;  // the sequence length, where it is compiled in
#else
constexpr int kFixedS = 0;
#endif

constexpr int kD = 64;  // head dimension
constexpr int kLanes = 32;
constexpr int kThreads = kWarps * kLanes;
constexpr int kStride = kD + (kSpread ? 8 : 0);  // halves from row to row of a tile in shared memory, but for wgmma
constexpr int kPartialStride = kD + 2;           // accumulator, maximum, sum
// Every step of every share is full: nothing is masked, and no maximum is missing.
constexpr bool kWholeSteps = kFixedS > 0 && kFixedS % (kShares * kTileN) == 0;
constexpr int kCombineRows = 4;  // rows a block of attention_combine: one a warp

static_assert(kTileM % 16 == 0 && kTileM <= 16 * kWarps, "a warp keeps the state of at most 16 rows in registers");
static_assert(kTileM * kTileN <= 2048 * kWarps, "nor more than 2048 scores");
static_assert(kStride % 8 == 0, "rows of a tile must stay 16-byte aligned for ldmatrix and uint4");
static_assert(kStages != 0 || (kPath == kMma && kVector == 8),
              "only fragments of mma.sync are read as 16 bytes a lane");
static_assert(kStages < 2 || (kPath != kScalar && kVector >= 2), "cp.async copies 4, 8 or 16 bytes");
static_assert(kCluster == 1 || kPath != kScalar, "clusters merge fragments");
static_assert(kPath != kWgmma || kTileM % 64 == 0, "wgmma takes 64 rows");
static_assert(!kOverlap || (kPath == kWgmma && kStages >= 3), "values of a step outlive the next one's keys");
static_assert(!kExchange || (kPath == kMma && kStages != 1 && kWarps * 16 > kTileM && kWarps * 4 <= kTileM),
              "two to four warps that share rows, each with 16 columns at least, and their copies by cp.async");

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 2^x in one instruction; a result below the normal range is 0, -inf gives 0.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float fast_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Starts a copy of kBytes to an address of shared memory, or fills with zeros without reading when not `valid`.
template <int kBytes>
__device__ __forceinline__ void cp_async(unsigned to, const void* from, bool valid) {
  const int read = valid ? kBytes : 0;
  if constexpr (kBytes == 16) {  // only 16 bytes may pass by L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(read) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes), "r"(read)
                 : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's committed groups are still on their way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

template <int kHalves>
struct VectorOf;
template <>
struct VectorOf<1> {
  using Type = unsigned short;
};
template <>
struct VectorOf<2> {
  using Type = unsigned;
};
template <>
struct VectorOf<8> {
  using Type = uint4;
};
using Vector = VectorOf<kVector>::Type;

// Hands every vector of kRows rows of kD halves to `store(row, column, vector)`, spread over kCrew threads of which
// this is number `thread`. Rows from `valid_rows` on are zeros and are not read. Loads are issued in batches: each
// batch waits for memory once.
template <int kRows, int kCrew, typename Store>
__device__ __forceinline__ void load_rows(const half* rows, int valid_rows, int thread, Store store) {
  constexpr int kPerRow = kD / kVector;
  constexpr int kVectors = kRows * kPerRow;
  constexpr int kPerThread = (kVectors + kCrew - 1) / kCrew;
  constexpr int kBatch = kPerThread < 8 ? kPerThread : 8;
  static_assert(kPerThread % kBatch == 0, "whole batches");
#pragma unroll 1
  for (int first = thread; first < kVectors; first += kBatch * kCrew) {
    Vector batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kCrew;
      batch[i] = Vector{};
      if (index / kPerRow < valid_rows) batch[i] = reinterpret_cast<const Vector*>(rows)[index];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kCrew;
      store(index / kPerRow, index % kPerRow * kVector, batch[i]);
    }
  }
}

// Where a tile of kRows rows has its halves in shared memory. For ldmatrix and plain loads: row after row, spread by 8
// halves behind each. For wgmma: column after column of 8x8 core matrices; spread, row after row with the eight vectors
// of 8 halves of each row swapped as the row's number says.
template <int kRows>
struct TileLayout {
  static constexpr int kColumn = kRows * 8;  // halves from a column of core matrices to the next
  static constexpr int kHalves = kRows * (kPath == kWgmma ? kD : kStride);

  __device__ static __forceinline__ int offset(unsigned row, unsigned column) {
    if constexpr (kPath != kWgmma) return row * kStride + column;
    if constexpr (kSpread) return row * kD + (column ^ row % 8 * 8);
    return column / 8 * kColumn + row * 8 + column % 8;
  }
};

// Puts kRows rows into a tile of shared memory. With two stages or more the copy is only started.
template <int kRows, int kCrew>
__device__ __forceinline__ void copy_tile(half* tile, const half* rows, int valid_rows, int thread) {
  using Layout = TileLayout<kRows>;
  if constexpr (kStages == 1) {
    load_rows<kRows, kCrew>(rows, valid_rows, thread, [tile](int row, int column, Vector vector) {
      *reinterpret_cast<Vector*>(tile + Layout::offset(row, column)) = vector;
    });
  } else {
    constexpr int kPerRow = kD / kVector;
    constexpr int kRowsAtOnce = kCrew / kPerRow;
    static_assert(kRows % kRowsAtOnce == 0, "every thread copies the same share");
    const unsigned row = static_cast<unsigned>(thread) / kPerRow;
    const unsigned column = static_cast<unsigned>(thread) % kPerRow * kVector;
    const half* from = rows + row * kD + column;
    const unsigned to = shared_address(tile);
    // The swizzle repeats every eight rows; all else is linear in the row.
    constexpr bool kLinear = kPath != kWgmma || !kSpread || kRowsAtOnce % 8 == 0;
    const unsigned first = to + 2 * Layout::offset(row, column);
#pragma unroll
    for (int i = 0; i < kRows; i += kRowsAtOnce) {
      const bool valid = static_cast<int>(row + i) < valid_rows;
      cp_async<kVector * 2>(kLinear ? first + 2 * Layout::offset(i, 0) : to + 2 * Layout::offset(row + i, column),
                            valid ? from + i * kD : rows, valid);
    }
  }
}

// The block's queries and its share of the keys, with pointers moved there. The share is empty when there are more
// shares than keys.
struct Work {
  const half* q;
  const half* k;
  const half* v;
  half* out;
  float* partial;
  int rows;  // queries of the tile that exist
  int keys;

  __device__ __forceinline__ int steps() const { return (keys + kTileN - 1) / kTileN; }
  __device__ __forceinline__ int keys_in_step(int step) const { return min(keys - step * kTileN, kTileN); }
};

// Where S is a constant and fits the tiles, so are `rows` and `keys`, and every test against them folds away.
__device__ __forceinline__ Work find_work(const half* q, const half* k, const half* v, half* out, float* partial,
                                          int S) {
  const int part = kShares == 1 ? 0 : blockIdx.z;
  const int first_row = blockIdx.x * kTileM;
  const int share = (S + kShares - 1) / kShares;
  const int first_key = min(part * share, S);
  const long long head = static_cast<long long>(blockIdx.y) * S;  // the head's first row in the tensors
  const long long state = static_cast<long long>(part) * gridDim.y * S + head + first_row;
  return Work{q + (head + first_row) * kD,
              k + (head + first_key) * kD,
              v + (head + first_key) * kD,
              out + (head + first_row) * kD,
              partial + state * kPartialStride,
              S % kTileM == 0 ? kTileM : min(S - first_row, kTileM),
              S % kShares == 0 ? share : min(S - first_key, share)};
}

// Writes two neighbouring columns of a row's result: finished, or as the state that attention_combine merges.
__device__ __forceinline__ void store_pair(const Work& work, int row, int column, float2 sums, float row_max,
                                           float row_sum) {
  if (row >= work.rows) return;
  if constexpr (kSplits == 1) {
    const float inverse = fast_reciprocal(row_sum);
    *reinterpret_cast<half2*>(work.out + row * kD + column) = __floats2half2_rn(sums.x * inverse, sums.y * inverse);
  } else {
    float* state = work.partial + row * kPartialStride;
    *reinterpret_cast<float2*>(state + column) = sums;
    if (column == 0) *reinterpret_cast<float2*>(state + kD) = make_float2(row_max, row_sum);
  }
}

// Maxima are those of scores in powers of two (score * scale * log2 e), so that exp is a bare exp2.
constexpr float kLog2E = 1.4426950408889634f;
__device__ __forceinline__ float minus_infinity() { return __int_as_float(0xff800000); }

// What to subtract from the scores before exp2. A warp whose keys were all masked so far has no maximum, and
// -inf - -inf would be NaN.
__device__ __forceinline__ float exponent_base(float row_max) {
  return !kWholeSteps && row_max == minus_infinity() ? 0.0f : row_max;
}

// Reductions over the kWidth neighbouring lanes that share a row.
template <int kWidth>
__device__ __forceinline__ float lane_max(float value) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

template <int kWidth>
__device__ __forceinline__ float lane_sum(float value) {
#pragma unroll
  for (int distance = kWidth / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

// A warp owns kTileM / kWarps rows. For the scores a lane owns keys (lane, lane + 32, ...), so a row needs one
// reduction a step instead of one a key; for the output a lane owns two columns. The weights change hands in shared
// memory.
namespace scalar {

constexpr int kRows = kTileM / kWarps;
constexpr int kKeys = kTileN / kLanes;  // keys a lane

struct Shared {
  float* queries;  // [kTileM][kD], scaled
  float* weights;  // [kTileM][kTileN]
  half* keys;      // [kTileN][kStride]
  half* values;    // [kTileN][kStride]

  __device__ __forceinline__ explicit Shared(unsigned char* arena)
      : queries(reinterpret_cast<float*>(arena)),
        weights(queries + kTileM * kD),
        keys(reinterpret_cast<half*>(weights + kTileM * kTileN)),
        values(keys + kTileN * kStride) {}
};

struct State {
  float2 sums[kRows] = {};    // of this lane's two columns
  float row_max[kRows];       // the same in all lanes
  float row_sum[kRows] = {};  // of this lane's keys only; reduced once at the end

  __device__ __forceinline__ State() {
#pragma unroll
    for (int r = 0; r < kRows; ++r) row_max[r] = minus_infinity();
  }
};

__device__ __forceinline__ void to_floats(float (&to)[8], const half* from) {
  const uint4 packed = *reinterpret_cast<const uint4*>(from);
  const half2* pairs = reinterpret_cast<const half2*>(&packed);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(pairs[i]);
    to[2 * i] = pair.x;
    to[2 * i + 1] = pair.y;
  }
}

// Queries are converted and scaled once, which leaves nothing but FMAs on them in the loop over keys.
__device__ __forceinline__ void load_queries(float* queries, const Work& work, float scale) {
  load_rows<kTileM, kThreads>(work.q, work.rows, threadIdx.x, [queries, scale](int row, int column, Vector vector) {
    const half* halves = reinterpret_cast<const half*>(&vector);
#pragma unroll
    for (int i = 0; i < kVector; ++i) queries[row * kD + column + i] = __half2float(halves[i]) * scale;
  });
}

// Each key that a lane reads serves all rows of the warp; each query read (a broadcast) all keys of the lane.
__device__ __forceinline__ void score(float (&scores)[kRows][kKeys], const float* queries, const half* keys, int lane) {
#pragma unroll 1
  for (int d = 0; d < kD; d += 8) {
    float key[kKeys][8];
#pragma unroll
    for (int j = 0; j < kKeys; ++j) to_floats(key[j], keys + (j * kLanes + lane) * kStride + d);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 low = *reinterpret_cast<const float4*>(queries + r * kD + d);
      const float4 high = *reinterpret_cast<const float4*>(queries + r * kD + d + 4);
      const float query[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < kKeys; ++j) scores[r][j] = fmaf(query[i], key[j][i], scores[r][j]);
      }
    }
  }
}

// Turns scores into weights, written to shared memory, and rescales the state to the new maxima.
__device__ __forceinline__ void weigh(State& state, float (&scores)[kRows][kKeys], float* weights, int valid_keys,
                                      int lane) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float largest = state.row_max[r];
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      if (j * kLanes + lane >= valid_keys) scores[r][j] = minus_infinity();
      largest = fmaxf(largest, scores[r][j]);
    }
    largest = lane_max<kLanes>(largest);  // finite: every step has a key
    const float shrink = fast_exp2(state.row_max[r] - largest);
    state.row_max[r] = largest;
    state.row_sum[r] *= shrink;
    state.sums[r].x *= shrink;
    state.sums[r].y *= shrink;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      const float weight = fast_exp2(scores[r][j] - largest);
      state.row_sum[r] += weight;
      weights[r * kTileN + j * kLanes + lane] = weight;
    }
  }
}

// Adds the step's weighted values. Keys go by fours; those beyond the last have weight 0 and value 0.
__device__ __forceinline__ void accumulate(State& state, const float* weights, const half* values, int valid_keys,
                                           int lane) {
#pragma unroll 2
  for (int key = 0; key < valid_keys; key += 4) {
    float2 value[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      value[i] = __half22float2(*reinterpret_cast<const half2*>(values + (key + i) * kStride + 2 * lane));
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 four = *reinterpret_cast<const float4*>(weights + r * kTileN + key);
      const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        state.sums[r].x = fmaf(weight[i], value[i].x, state.sums[r].x);
        state.sums[r].y = fmaf(weight[i], value[i].y, state.sums[r].y);
      }
    }
  }
}

__device__ __forceinline__ void attention(const Work& work, float scale, unsigned char* arena) {
  const int lane = threadIdx.x % kLanes;
  const int first_row = threadIdx.x / kLanes * kRows;
  const Shared shared(arena);
  const float* queries = shared.queries + first_row * kD;
  float* weights = shared.weights + first_row * kTileN;
  State state;

  load_queries(shared.queries, work, scale * kLog2E);
#pragma unroll 1
  for (int step = 0; step < work.steps(); ++step) {
    const int valid_keys = work.keys_in_step(step);
    copy_tile<kTileN, kThreads>(shared.keys, work.k + step * kTileN * kD, valid_keys, threadIdx.x);
    copy_tile<kTileN, kThreads>(shared.values, work.v + step * kTileN * kD, valid_keys, threadIdx.x);
    __syncthreads();
    float scores[kRows][kKeys] = {};
    score(scores, queries, shared.keys, lane);
    weigh(state, scores, weights, valid_keys, lane);
    __syncwarp();  // weights cross lanes, never warps
    accumulate(state, weights, shared.values, valid_keys, lane);
    __syncthreads();  // the next step's copy overwrites the tiles
  }

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    store_pair(work, first_row + r, 2 * lane, state.sums[r], state.row_max[r], lane_sum<kLanes>(state.row_sum[r]));
  }
}

}  // namespace scalar

// A warp owns 16 rows and, of each step, one of kKeyGroups shares of the keys: warps beyond kTileM / 16 would have no
// rows of their own, so they split the keys and the block merges their states at the end. The warps of a share copy its
// tiles themselves and wait for nobody else. Scores leave the tensor cores in the layout in which the weights enter
// them again: a pair of score fragments is one fragment of weights, in registers.
//
// In a 16x8 accumulator fragment a thread holds rows lane / 4 (c[0], c[1]) and lane / 4 + 8 (c[2], c[3]), columns
// lane % 4 * 2 and the next; the four lanes of a quad share their rows. Those of wgmma are the same, warp by warp.
namespace tensor {

constexpr int kRowGroups = kTileM / 16;
constexpr int kKeyGroups = kWarps / kRowGroups;
constexpr int kKeys = kPath == kScalar ? 16 : kTileN / kKeyGroups;  // keys a warp and step
constexpr int kCrew = kRowGroups * kLanes;                          // threads of a share
constexpr int kQuad = 4;
constexpr int kExchangeStride = kD + 8;  // floats a row while states are merged: accumulator, maximum, sum, and no
                                         // bank conflicts
using Layout = TileLayout<kKeys>;

using Fragment = unsigned[4];
using Sums = float[8][4];  // 16 rows of 64 columns

struct State {
  Sums sums = {};
  float row_max[2] = {minus_infinity(), minus_infinity()};
  float row_sum[2] = {};  // of this thread's columns only; reduced over the quad once at the end
};

// What this thread does, and for whom.
struct Role {
  int lane;
  int first_row;  // of the warp's 16, in the tile of queries
  int key_group;
  int thread;  // in the crew of the share

  __device__ __forceinline__ Role()
      : lane(threadIdx.x % kLanes),
        first_row(threadIdx.x / kLanes % kRowGroups * 16),
        key_group(kKeyGroups == 1 ? 0 : threadIdx.x / kCrew),
        thread(threadIdx.x % kCrew) {}
};

// A barrier of the warps of one share of the keys.
__device__ __forceinline__ void crew_barrier(const Role& role) {
  if constexpr (kKeyGroups == 1) {
    __syncthreads();
  } else if constexpr (kRowGroups == 1) {
    __syncwarp();
  } else {
    asm volatile("bar.sync %0, %1;" ::"r"(role.key_group + 1), "n"(kCrew) : "memory");
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// c = a b for a 16x16 (row major) and b 16x8 (column major), fp32 sums.
__device__ __forceinline__ void mma_m16n8k16_first(float (&c)[4], const Fragment& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

// c += a b
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const Fragment& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// The warp's queries as fragments, from global memory. Column 16 f + i of fragment f is column 16 f + i of the query.
__device__ __forceinline__ void load_queries(Fragment (&queries)[kD / 16], const Work& work, const Role& role) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = role.first_row + i % 2 * 8 + role.lane / kQuad;
    const half* from = work.q + row * kD + i / 2 * 8 + role.lane % kQuad * 2;
#pragma unroll
    for (int f = 0; f < kD / 16; ++f) {
      queries[f][i] = row < work.rows ? *reinterpret_cast<const unsigned*>(from + f * 16) : 0u;
    }
  }
}

__device__ __forceinline__ void mask(float (&scores)[kKeys / 8][4], int valid_keys, int lane) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (n * 8 + lane % kQuad * 2 + i % 2 >= valid_keys) scores[n][i] = minus_infinity();
    }
  }
}

// Turns scores into weights in place; `shrink` is what the older sums must be multiplied by. `scale` is positive, so
// the largest raw score is the largest scaled one.
__device__ __forceinline__ void weigh(State& state, float (&scores)[kKeys / 8][4], float scale, float (&shrink)[2]) {
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int c = 2 * half_tile;
    float largest = minus_infinity();
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) largest = fmaxf(largest, fmaxf(scores[n][c], scores[n][c + 1]));
    largest = fmaxf(state.row_max[half_tile], lane_max<kQuad>(largest) * scale);
    const float base = exponent_base(largest);
    shrink[half_tile] = fast_exp2(state.row_max[half_tile] - base);
    state.row_max[half_tile] = largest;

    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      scores[n][c] = fast_exp2(fmaf(scores[n][c], scale, -base));
      scores[n][c + 1] = fast_exp2(fmaf(scores[n][c + 1], scale, -base));
      sum += scores[n][c] + scores[n][c + 1];
    }
    state.row_sum[half_tile] = fmaf(state.row_sum[half_tile], shrink[half_tile], sum);
  }
}

__device__ __forceinline__ void rescale(State& state, const float (&shrink)[2]) {
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) state.sums[n][i] *= shrink[i / 2];
  }
}

using Weights = Fragment[kKeys / 16];

__device__ __forceinline__ void pack_weights(Weights& weights, const float (&scores)[kKeys / 8][4]) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      weights[k][i] = pack(scores[2 * k + i / 2][i % 2 * 2], scores[2 * k + i / 2][i % 2 * 2 + 1]);
    }
  }
}

// A step of a share from scores to the weights of its values.
__device__ __forceinline__ void weigh_step(State& state, float (&scores)[kKeys / 8][4], float scale, int valid_keys,
                                           int lane, float (&shrink)[2]) {
  if (valid_keys < kKeys) mask(scores, valid_keys, lane);
  weigh(state, scores, scale, shrink);
}

constexpr int kBuffers = kStages == 0 ? 1 : kStages;
constexpr int kTilesBytes = (kStages == 0 ? (kExchange ? 1 : 0) : 2 * kStages) * Layout::kHalves * 2;
constexpr int kStateBytes = kTileM * kExchangeStride * 4;
// Shared memory of a share: its tiles, and in the same place, in the end, its state.
constexpr int kGroupBytes = kExchange || kKeyGroups == 1 || kTilesBytes > kStateBytes ? kTilesBytes : kStateBytes;
constexpr int kBoardOffset = kKeyGroups * kGroupBytes;  // for what is exchanged step by step
constexpr int kBoardBytes = kExchange ? 2 * (kTileM * kTileN * 2 + kKeyGroups * kTileM * 4) : 0;
constexpr int kMailboxOffset = kBoardOffset + kBoardBytes;  // for the states of a cluster

// The steps' tiles of one share of the keys in shared memory.
struct Tiles {
  half* first;  // [kBuffers][keys, values]

  __device__ __forceinline__ Tiles(unsigned char* arena, const Role& role)
      : first(reinterpret_cast<half*>(arena + role.key_group * kGroupBytes)) {}
  __device__ __forceinline__ half* keys(int step) const { return first + step % kBuffers * 2 * Layout::kHalves; }
  __device__ __forceinline__ half* values(int step) const { return keys(step) + Layout::kHalves; }
};

__device__ __forceinline__ int valid_keys_of(const Work& work, const Role& role, int step) {
  return kWholeSteps ? kKeys : work.keys_in_step(step) - role.key_group * kKeys;
}

// The keys, or the values, of a step of the share.
__device__ __forceinline__ void copy_keys(const Work& work, const Role& role, half* tile, int step) {
  copy_tile<kKeys, kCrew>(tile, work.k + (step * kTileN + role.key_group * kKeys) * kD, valid_keys_of(work, role, step),
                          role.thread);
}
__device__ __forceinline__ void copy_values(const Work& work, const Role& role, half* tile, int step) {
  copy_tile<kKeys, kCrew>(tile, work.v + (step * kTileN + role.key_group * kKeys) * kD, valid_keys_of(work, role, step),
                          role.thread);
}

__device__ __forceinline__ void copy_step(const Work& work, const Role& role, const Tiles& tiles, int step) {
  copy_keys(work, role, tiles.keys(step), step);
  copy_values(work, role, tiles.values(step), step);
}

// Starts the copy of a step, if there is one. A group is committed in any case: the waits count the same in every step.
__device__ __forceinline__ void start_copy(const Work& work, const Role& role, const Tiles& tiles, int step) {
  if (step < work.steps()) copy_step(work, role, tiles, step);
  cp_async_commit();
}

// Makes what this thread copied visible to the crew. wgmma reads shared memory by a proxy of its own.
__device__ __forceinline__ void publish(const Role& role) {
  if constexpr (kPath == kWgmma) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  crew_barrier(role);
}

// Keys and values straight from global memory to the fragments of mma.sync, 16 bytes a load. What makes the loads wide
// is that a product does not care about the order of the columns it sums over, nor one column of the result for which
// comes next: lane l takes columns 8 (l % 4) and 32 + 8 (l % 4) on of queries and keys, and columns 8 (l / 4) on of
// values. Its sums are then those of columns 16 (l % 4) on.
namespace direct {

using Keys = unsigned[kKeys / 8][8];
using Values = uint4[kKeys / 16][4];

__device__ __forceinline__ void load_eight(unsigned* to, const half* from, bool valid) {
  const uint4 low = valid ? *reinterpret_cast<const uint4*>(from) : uint4{};
  const uint4 high = valid ? *reinterpret_cast<const uint4*>(from + 32) : uint4{};
  const unsigned words[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = words[i];
}

__device__ __forceinline__ void load_wide_queries(Fragment (&queries)[kD / 16], const Work& work, const Role& role) {
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int row = role.first_row + half_tile * 8 + role.lane / kQuad;
    unsigned words[8];
    load_eight(words, work.q + row * kD + role.lane % kQuad * 8, row < work.rows);
#pragma unroll
    for (int i = 0; i < 8; ++i) queries[i / 2][i % 2 * 2 + half_tile] = words[i];
  }
}

__device__ __forceinline__ void load_keys(Keys& keys, const Work& work, const Role& role, int step, int valid_keys) {
  const half* first = work.k + (step * kTileN + role.key_group * kKeys) * kD;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
    const int key = n * 8 + role.lane / kQuad;
    load_eight(keys[n], first + key * kD + role.lane % kQuad * 8, key < valid_keys);
  }
}

__device__ __forceinline__ void load_values(Values& values, const Work& work, const Role& role, int step,
                                            int valid_keys) {
  const half* first = work.v + (step * kTileN + role.key_group * kKeys) * kD;
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int key = k * 16 + i / 2 * 8 + role.lane % kQuad * 2 + i % 2;
      const half* from = first + key * kD + role.lane / kQuad * 8;
      values[k][i] = key < valid_keys ? *reinterpret_cast<const uint4*>(from) : uint4{};
    }
  }
}

__device__ __forceinline__ void score(float (&scores)[kKeys / 8][4], const Fragment (&queries)[kD / 16],
                                      const Keys& keys) {
#pragma unroll
  for (int f = 0; f < kD / 16; ++f) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      if (f == 0) {
        mma_m16n8k16_first(scores[n], queries[f], keys[n][0], keys[n][1]);
      } else {
        mma_m16n8k16(scores[n], queries[f], keys[n][2 * f], keys[n][2 * f + 1]);
      }
    }
  }
}

// Halves `index` of two rows of values as one register.
__device__ __forceinline__ unsigned zip(const uint4& first, const uint4& second, int index) {
  const unsigned a[4] = {first.x, first.y, first.z, first.w};
  const unsigned b[4] = {second.x, second.y, second.z, second.w};
  return __byte_perm(a[index / 2], b[index / 2], index % 2 == 0 ? 0x5410 : 0x7632);
}

__device__ __forceinline__ void accumulate(State& state, const Weights& weights, const Values& values) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      mma_m16n8k16(state.sums[n], weights[k], zip(values[k][0], values[k][1], n), zip(values[k][2], values[k][3], n));
    }
  }
}

__device__ __forceinline__ void attention(const Work& work, const Role& role, float scale, State& state) {
  Fragment queries[kD / 16];
  load_wide_queries(queries, work, role);
#pragma unroll 1
  for (int step = 0; step < work.steps(); ++step) {
    const int valid_keys = valid_keys_of(work, role, step);
    Keys keys;
    Values values;
    load_keys(keys, work, role, step, valid_keys);
    load_values(values, work, role, step, valid_keys);
    float scores[kKeys / 8][4];
    score(scores, queries, keys);
    float shrink[2];
    weigh_step(state, scores, scale, valid_keys, role.lane, shrink);
    if (step > 0) rescale(state, shrink);
    Weights weights;
    pack_weights(weights, scores);
    accumulate(state, weights, values);
  }
}

}  // namespace direct

// Keys and values through shared memory, read by ldmatrix.
namespace staged {

// Four 8x8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix(Fragment& fragment, const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(Fragment& fragment, const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

// The row that this lane addresses when ldmatrix reads a 16x16 piece: by matrices down the rows first, ...
__device__ __forceinline__ const half* rows_first(const half* piece, int lane) {
  return piece + lane % 16 * kStride + lane / 16 * 8;
}
// ... or along the columns first.
__device__ __forceinline__ const half* columns_first(const half* piece, int lane) {
  return piece + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
}

__device__ __forceinline__ void score(float (&scores)[kKeys / 8][4], const Fragment (&queries)[kD / 16],
                                      const half* keys, int lane) {
#pragma unroll
  for (int d = 0; d < kD / 16; ++d) {
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      Fragment key;
      ldmatrix(key, columns_first(keys + n * 16 * kStride + d * 16, lane));
      if (d == 0) {
        mma_m16n8k16_first(scores[2 * n], queries[d], key[0], key[1]);
        mma_m16n8k16_first(scores[2 * n + 1], queries[d], key[2], key[3]);
      } else {
        mma_m16n8k16(scores[2 * n], queries[d], key[0], key[1]);
        mma_m16n8k16(scores[2 * n + 1], queries[d], key[2], key[3]);
      }
    }
  }
}

__device__ __forceinline__ void accumulate(State& state, const Weights& weights, const half* values, int lane) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
    for (int n = 0; n < kD / 16; ++n) {
      Fragment value;
      ldmatrix_transposed(value, rows_first(values + k * 16 * kStride + n * 16, lane));
      mma_m16n8k16(state.sums[2 * n], weights[k], value[0], value[1]);
      mma_m16n8k16(state.sums[2 * n + 1], weights[k], value[2], value[3]);
    }
  }
}

__device__ __forceinline__ void compute_step(State& state, const Fragment (&queries)[kD / 16], const Tiles& tiles,
                                             int step, float scale, int valid_keys, int lane) {
  float scores[kKeys / 8][4];
  score(scores, queries, tiles.keys(step), lane);
  float shrink[2];
  weigh_step(state, scores, scale, valid_keys, lane, shrink);
  if (step > 0) rescale(state, shrink);
  Weights weights;
  pack_weights(weights, scores);
  accumulate(state, weights, tiles.values(step), lane);
}

}  // namespace staged

// The warps that share rows hand each other the weights of a step, and each then sums the values of all keys in its own
// columns: what they exchange is a quarter of their sums, and nothing is left to merge in the end. A weight is relative
// to the maximum of the warp that found it, so the values of each warp's keys are summed apart and put together in
// fp32, in the order of the warps. The sum of the weights is one more product, with a column of ones.
namespace exchange {

constexpr int kColumns = kExchange ? kD / kKeyGroups : kD;  // of the result, a warp
constexpr unsigned kOnes = 0x3c003c00;                      // two halves

// Weights of two steps, as fragments, and the rows' maxima in them.
struct Board {
  static constexpr int kFragments = kTileM * kTileN / 256;

  uint4* weights;  // [2][row group][key group][kKeys / 16][kLanes]
  float* maxima;   // [2][key group][kTileM]

  __device__ __forceinline__ explicit Board(unsigned char* start)
      : weights(reinterpret_cast<uint4*>(start)), maxima(reinterpret_cast<float*>(weights + 2 * kFragments * kLanes)) {}

  // This lane's part of the first fragment of a warp.
  __device__ __forceinline__ uint4* fragments(int step, const Role& role, int key_group) const {
    return weights + (step % 2 * kFragments + (role.first_row / 16 * kKeyGroups + key_group) * (kKeys / 16)) * kLanes +
           role.lane;
  }
  // The maximum of this lane's first row; that of the second is 8 behind it.
  __device__ __forceinline__ float* maximum(int step, const Role& role, int key_group) const {
    return maxima + (step % 2 * kKeyGroups + key_group) * kTileM + role.first_row + role.lane / kQuad;
  }
};

// What a warp knows of its rows: the sums of its columns, and all of the rest.
struct State {
  float sums[kColumns / 8][4] = {};
  float row_max[2] = {minus_infinity(), minus_infinity()};
  float row_sum[2] = {};
};

// Puts the weights of the warp's own keys on the board.
__device__ __forceinline__ void publish_weights(const Board& board, float (&scores)[kKeys / 8][4], float scale,
                                                int step, int valid_keys, const Role& role) {
  if (valid_keys < kKeys) mask(scores, valid_keys, role.lane);
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int c = 2 * half_tile;
    float largest = minus_infinity();
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) largest = fmaxf(largest, fmaxf(scores[n][c], scores[n][c + 1]));
    largest = lane_max<kQuad>(largest) * scale;
    const float base = exponent_base(largest);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      scores[n][c] = fast_exp2(fmaf(scores[n][c], scale, -base));
      scores[n][c + 1] = fast_exp2(fmaf(scores[n][c + 1], scale, -base));
    }
    if (role.lane % kQuad == 0) board.maximum(step, role, role.key_group)[half_tile * 8] = largest;
  }
  Weights weights;
  pack_weights(weights, scores);
  uint4* to = board.fragments(step, role, role.key_group);
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    to[k * kLanes] = make_uint4(weights[k][0], weights[k][1], weights[k][2], weights[k][3]);
  }
}

// Weighted values of the keys of one group, in this warp's columns, and the sums of the weights.
struct Part {
  float sums[kColumns / 8][4];
  float weights[4];  // the same in both columns of a row
};

__device__ __forceinline__ void accumulate(Part& part, const uint4* fragments, const half* values, int column,
                                           int lane) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    const uint4 packed = fragments[k * kLanes];
    const Fragment weights = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
    for (int n = 0; n < kColumns / 16; ++n) {
      Fragment value;
      staged::ldmatrix_transposed(value, staged::rows_first(values + k * 16 * kStride + column + n * 16, lane));
      if (k == 0) {
        mma_m16n8k16_first(part.sums[2 * n], weights, value[0], value[1]);
        mma_m16n8k16_first(part.sums[2 * n + 1], weights, value[2], value[3]);
      } else {
        mma_m16n8k16(part.sums[2 * n], weights, value[0], value[1]);
        mma_m16n8k16(part.sums[2 * n + 1], weights, value[2], value[3]);
      }
    }
    if (k == 0) {
      mma_m16n8k16_first(part.weights, weights, kOnes, kOnes);
    } else {
      mma_m16n8k16(part.weights, weights, kOnes, kOnes);
    }
  }
}

// Adds a step to the state. `values(group)` is where the values of a group's keys are.
template <typename Values>
__device__ __forceinline__ void add_step(State& state, const Board& board, int step, const Role& role, Values values) {
  const int column = role.key_group * kColumns;
  Part parts[kKeyGroups];
  float maxima[kKeyGroups][2];
#pragma unroll
  for (int group = 0; group < kKeyGroups; ++group) {
    maxima[group][0] = board.maximum(step, role, group)[0];
    maxima[group][1] = board.maximum(step, role, group)[8];
    accumulate(parts[group], board.fragments(step, role, group), values(group), column, role.lane);
  }
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int c = 2 * half_tile;
    float largest = state.row_max[half_tile];
#pragma unroll
    for (int group = 0; group < kKeyGroups; ++group) largest = fmaxf(largest, maxima[group][half_tile]);
    const float base = exponent_base(largest);
    if (step > 0) {
      const float shrink = fast_exp2(state.row_max[half_tile] - base);
      state.row_sum[half_tile] *= shrink;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        state.sums[n][c] *= shrink;
        state.sums[n][c + 1] *= shrink;
      }
    }
    state.row_max[half_tile] = largest;
#pragma unroll
    for (int group = 0; group < kKeyGroups; ++group) {
      const float weight = fast_exp2(maxima[group][half_tile] - base);
      state.row_sum[half_tile] = fmaf(weight, parts[group].weights[c], state.row_sum[half_tile]);
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        state.sums[n][c] = fmaf(weight, parts[group].sums[n][c], state.sums[n][c]);
        state.sums[n][c + 1] = fmaf(weight, parts[group].sums[n][c + 1], state.sums[n][c + 1]);
      }
    }
  }
}

// Starts the copy of the values of the warp's own keys. It is a loop of its own lest the compiler, which sees nobody
// wait for the copies, starts them only after the scores.
__device__ __forceinline__ void start_values(const Work& work, const Role& role, half* tile, int step) {
  constexpr int kParts = kKeys * kD / kVector >= 2 * kCrew ? 2 : 1;
  constexpr int kRows = kKeys / kParts;
  const half* rows = work.v + (step * kTileN + role.key_group * kKeys) * kD;
  const int valid_keys = valid_keys_of(work, role, step);
#pragma unroll 1
  for (int first = 0; first < kKeys; first += kRows) {
    copy_tile<kRows, kCrew>(tile + first * kStride, rows + first * kD, valid_keys - first, role.thread);
  }
  cp_async_commit();
}

// Keys straight to registers; the values of the step meanwhile go to shared memory.
__device__ __forceinline__ void attention_direct(const Work& work, const Role& role, unsigned char* arena,
                                                 const Board& board, float scale, State& state) {
  const auto values = [arena](int group) { return reinterpret_cast<half*>(arena + group * kGroupBytes); };
  Fragment queries[kD / 16];
  direct::load_wide_queries(queries, work, role);
#pragma unroll 1
  for (int step = 0; step < work.steps(); ++step) {
    const int valid_keys = valid_keys_of(work, role, step);
    direct::Keys keys;
    direct::load_keys(keys, work, role, step, valid_keys);
    if (step > 0) __syncthreads();  // nobody reads the values of the step before any more
    start_values(work, role, values(role.key_group), step);
    float scores[kKeys / 8][4];
    direct::score(scores, queries, keys);
    publish_weights(board, scores, scale, step, valid_keys, role);
    cp_async_wait<0>();
    __syncthreads();
    add_step(state, board, step, role, values);
  }
}

// Starts the copy of a step, if there is one, as two groups: the scores need not wait for the values.
__device__ __forceinline__ void start_copies(const Work& work, const Role& role, const Tiles& tiles, int step) {
  if (step < work.steps()) copy_keys(work, role, tiles.keys(step), step);
  cp_async_commit();
  if (step < work.steps()) copy_values(work, role, tiles.values(step), step);
  cp_async_commit();
}

__device__ __forceinline__ void attention_staged(const Work& work, const Role& role, const Tiles& tiles,
                                                 const Board& board, float scale, State& state) {
#pragma unroll 1
  for (int step = 0; step < kStages - 1; ++step) start_copies(work, role, tiles, step);
  Fragment queries[kD / 16];
  load_queries(queries, work, role);
#pragma unroll 1
  for (int step = 0; step < work.steps(); ++step) {
    cp_async_wait<2 * kBuffers - 3>();
    crew_barrier(role);
    float scores[kKeys / 8][4];
    staged::score(scores, queries, tiles.keys(step), role.lane);
    publish_weights(board, scores, scale, step, valid_keys_of(work, role, step), role);
    cp_async_wait<2 * kBuffers - 4>();
    __syncthreads();  // weights and values are there; those of the step before are no longer needed by anyone
    start_copies(work, role, tiles, step + kStages - 1);
    add_step(state, board, step, role,
             [&](int group) { return tiles.values(step) + (group - role.key_group) * (kGroupBytes / 2); });
  }
  cp_async_wait<0>();
}

}  // namespace exchange

// Keys and values through shared memory, read by the tensor cores themselves: four warps with 64 rows together.
namespace warpgroup {

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kPending committed groups of products are still being computed.
template <int kPending>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps the compiler from touching registers that a product in flight reads or writes on the wrong side of a wait.
template <int kCount>
__device__ __forceinline__ void pin(float (&fragments)[kCount][4]) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(fragments[n][i])::"memory");
  }
}

// How the tensor cores find a matrix of 8x8 core matrices: where it starts, and the bytes from one core matrix to the
// next in its two directions. In the swizzled layout only the direction down the rows counts.
__device__ __forceinline__ unsigned long long describe(const half* start, int leading_bytes, int stride_bytes) {
  constexpr unsigned long long kSwizzle128 = 1ull << 62;
  return static_cast<unsigned long long>((shared_address(start) & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading_bytes >> 4) << 16 |
         static_cast<unsigned long long>(stride_bytes >> 4) << 32 | (kSpread ? kSwizzle128 : 0);
}

constexpr int kColumnBytes = Layout::kColumn * 2;
constexpr int kCoreBytes = 128;
constexpr int kEightRowsBytes = 8 * kD * 2;

// Keys from number `key` and columns from `column` on, to be summed over along their rows.
__device__ __forceinline__ unsigned long long describe_keys(const half* keys, int key, int column) {
  if constexpr (kSpread) return describe(keys + key * kD + column, 0, kEightRowsBytes);
  return describe(keys + Layout::offset(key, column), kColumnBytes, kCoreBytes);
}

// Values of keys from number `key` on, to be summed over down their columns.
__device__ __forceinline__ unsigned long long describe_values(const half* values, int key) {
  if constexpr (kSpread) return describe(values + key * kD, 0, kEightRowsBytes);
  return describe(values + Layout::offset(key, 0), kCoreBytes, kColumnBytes);
}

// clang-format off
// c = a b, or c += a b, for 64x16 a in registers and 16x64 b in shared memory, of which columns (kTransposed = 0) or
// rows are contiguous. The result is there after commit() and wait().
template <int kTransposed>
__device__ __forceinline__ void wgmma_m64n64k16(Sums& c, const Fragment& a, unsigned long long b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
      "{%32, %33, %34, %35}, %36, add, 1, 1, %38;\n"
      "}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)), "n"(kTransposed)
      : "memory");
}
// clang-format on

// clang-format off
// The same for 16x128 b, of which columns are contiguous.
__device__ __forceinline__ void wgmma_m64n128k16(float (&c)[16][4], const Fragment& a, unsigned long long b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "{%64, %65, %66, %67}, %68, add, 1, 1, 0;\n"
      "}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]),
        "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]),
        "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]),
        "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]),
        "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]),
        "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add))
      : "memory");
}
// clang-format on

// Starts scores = queries keys^T.
__device__ __forceinline__ void start_score(float (&scores)[kKeys / 8][4], const Fragment (&queries)[kD / 16],
                                            const half* keys) {
  fence();
#pragma unroll
  for (int d = 0; d < kD / 16; ++d) {
    if constexpr (kKeys == 128) {
      wgmma_m64n128k16(reinterpret_cast<float(&)[16][4]>(scores), queries[d], describe_keys(keys, 0, d * 16), d > 0);
    } else {
      wgmma_m64n64k16<0>(reinterpret_cast<Sums&>(scores), queries[d], describe_keys(keys, 0, d * 16), d > 0);
    }
  }
  commit();
}

// Starts sums += weights values.
__device__ __forceinline__ void start_accumulate(State& state, const Weights& weights, const half* values) {
  fence();
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    wgmma_m64n64k16<1>(state.sums, weights[k], describe_values(values, k * 16), true);
  }
  commit();
}

__device__ __forceinline__ void compute_step(State& state, const Fragment (&queries)[kD / 16], const Tiles& tiles,
                                             int step, float scale, int valid_keys, int lane) {
  float scores[kKeys / 8][4];
  start_score(scores, queries, tiles.keys(step));
  wait<0>();
  pin(scores);
  float shrink[2];
  weigh_step(state, scores, scale, valid_keys, lane, shrink);
  // Always: with `if (step > 0)` before it, ptxas 13.0 was seen to keep the weights in the registers of the queries.
  rescale(state, shrink);
  Weights weights;
  pack_weights(weights, scores);
  start_accumulate(state, weights, tiles.values(step));
  wait<0>();
  pin(state.sums);
}

// As attention_staged, but a step's scores and the weighted values of the step before are computed together: the tensor
// cores have twice as much to do between two waits. (ptxas 13.0 waits for both before the softmax. A branch on what the
// softmax finds would keep it from that, and makes it serialise the products instead.)
__device__ __forceinline__ void attention_overlapped(const Work& work, const Role& role, const Tiles& tiles,
                                                     const Fragment (&queries)[kD / 16], float scale, State& state) {
  const int steps = work.steps();
  if (steps == 0) return;
#pragma unroll 1
  for (int step = 0; step < kStages - 1; ++step) start_copy(work, role, tiles, step);
  Weights weights;
  {
    cp_async_wait<kStages - 2>();
    publish(role);
    float scores[kKeys / 8][4];
    start_score(scores, queries, tiles.keys(0));
    wait<0>();
    pin(scores);
    float shrink[2];  // of sums that are still 0
    weigh_step(state, scores, scale, valid_keys_of(work, role, 0), role.lane, shrink);
    pack_weights(weights, scores);
  }
#pragma unroll 1
  for (int step = 1; step < steps; ++step) {
    cp_async_wait<kStages - 3>();
    publish(role);  // this step is there; the one before the last is no longer needed by anyone
    float scores[kKeys / 8][4];
    start_score(scores, queries, tiles.keys(step));
    start_accumulate(state, weights, tiles.values(step - 1));
    start_copy(work, role, tiles, step + kStages - 2);
    wait<1>();
    pin(scores);
    float shrink[2];
    weigh_step(state, scores, scale, valid_keys_of(work, role, step), role.lane, shrink);
    pin(scores);
    wait<0>();
    pin(state.sums);
    rescale(state, shrink);
    pack_weights(weights, scores);
  }
  start_accumulate(state, weights, tiles.values(steps - 1));
  wait<0>();
  pin(state.sums);
}

}  // namespace warpgroup

__device__ __forceinline__ void compute_step(State& state, const Fragment (&queries)[kD / 16], const Tiles& tiles,
                                             int step, float scale, int valid_keys, int lane) {
  if constexpr (kPath == kWgmma) {
    warpgroup::compute_step(state, queries, tiles, step, scale, valid_keys, lane);
  } else {
    staged::compute_step(state, queries, tiles, step, scale, valid_keys, lane);
  }
}

__device__ __forceinline__ void attention_staged(const Work& work, const Role& role, const Tiles& tiles,
                                                 const Fragment (&queries)[kD / 16], float scale, State& state) {
  const int steps = work.steps();
  if constexpr (kStages > 1) {
#pragma unroll 1
    for (int step = 0; step < kStages - 1; ++step) start_copy(work, role, tiles, step);
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if constexpr (kStages > 1) {
      cp_async_wait<kStages - 2>();
      publish(role);  // this step is there; the one before is no longer needed by anyone
      start_copy(work, role, tiles, step + kStages - 1);
    } else {
      copy_step(work, role, tiles, step);
      publish(role);
    }
    compute_step(state, queries, tiles, step, scale, valid_keys_of(work, role, step), role.lane);
    if constexpr (kStages == 1) crew_barrier(role);  // the next copy overwrites the tiles
  }
}

// Calls visit(row of the tile, column, sums, half of the fragment) for each pair of columns that the thread holds.
template <typename Visit>
__device__ __forceinline__ void for_each_pair(const State& state, const Role& role, Visit visit) {
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int row = role.first_row + half_tile * 8 + role.lane / kQuad;
    const int c = 2 * half_tile;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      if constexpr (kStages == 0) {  // fragments n and n + 1 hold neighbours
        visit(row, role.lane % kQuad * 16 + n % 2 * 8 + n / 2 * 2,
              make_float2(state.sums[n / 2 * 2][c + n % 2], state.sums[n / 2 * 2 + 1][c + n % 2]), half_tile);
      } else {
        visit(row, n * 8 + role.lane % kQuad * 2, make_float2(state.sums[n][c], state.sums[n][c + 1]), half_tile);
      }
    }
  }
}

// Where states lie while they are merged: [rows][kExchangeStride], sums, then maximum and sum.
__device__ __forceinline__ void put_pair(float* states, int row, int column, float2 sums, float row_max,
                                         float row_sum) {
  float* slot = states + row * kExchangeStride;
  *reinterpret_cast<float2*>(slot + column) = sums;
  if (column == 0) *reinterpret_cast<float2*>(slot + kD) = make_float2(row_max, row_sum);
}

// Merges pairs of columns of kCount states, in their order: load(i, column) gives two floats of the row of state i.
// Calls visit(column, sums, maximum, sum).
template <int kCount, int kPairs, typename Load, typename Visit>
__device__ __forceinline__ void merge_pairs(int column, int distance, Load load, Visit visit) {
  float2 max_and_sum[kCount];
  float2 pairs[kCount][kPairs];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    max_and_sum[i] = load(i, kD);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) pairs[i][j] = load(i, column + j * distance);
  }
  float row_max = max_and_sum[0].x;
#pragma unroll
  for (int i = 1; i < kCount; ++i) row_max = fmaxf(row_max, max_and_sum[i].x);
  const float base = exponent_base(row_max);
  float row_sum = 0.0f;
  float2 sums[kPairs] = {};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float shrink = fast_exp2(max_and_sum[i].x - base);
    row_sum = fmaf(shrink, max_and_sum[i].y, row_sum);
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      sums[j].x = fmaf(shrink, pairs[i][j].x, sums[j].x);
      sums[j].y = fmaf(shrink, pairs[i][j].y, sums[j].y);
    }
  }
#pragma unroll
  for (int j = 0; j < kPairs; ++j) visit(column + j * distance, sums[j], row_max, row_sum);
}

// The blocks of a cluster send their states here. Each block finishes kOwnRows of the rows.
struct Mailbox {
  static constexpr int kOwnRows = kTileM / kCluster;

  float* states;  // [kCluster][kOwnRows][kExchangeStride]

  // Tells the others that this block has started: only then has it memory to send to.
  __device__ __forceinline__ void open() const { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
  __device__ __forceinline__ void wait_until_open() const {
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
  }

  // Sends two columns of a row to the block that finishes it.
  __device__ __forceinline__ void send_pair(int row, int column, float2 sums, float row_max, float row_sum) const {
    const float* slot = states + (blockIdx.z * kOwnRows + row % kOwnRows) * kExchangeStride;
    unsigned to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(shared_address(slot)), "r"(row / kOwnRows));
    send(to + column * 4, sums);
    if (column == 0) send(to + kD * 4, make_float2(row_max, row_sum));
  }
  __device__ __forceinline__ static void send(unsigned to, float2 pair) {
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(pair.x), "f"(pair.y) : "memory");
  }

  // Waits for what the others send, and until they have what this block sent.
  __device__ __forceinline__ void wait_for_all() const {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
  }
};

// Merges the states of the blocks of a cluster, in the order of the blocks.
__device__ __forceinline__ void merge_cluster(const Work& work, const Mailbox& mailbox) {
  constexpr int kOwnRows = Mailbox::kOwnRows;
  constexpr int kThreadsPerRow = kThreads / kOwnRows < kD / 2 ? kThreads / kOwnRows : kD / 2;
  const int own = threadIdx.x / kThreadsPerRow;
  mailbox.wait_for_all();
  if (own >= kOwnRows) return;
  const float* states = mailbox.states + own * kExchangeStride;
  merge_pairs<kCluster, kD / 2 / kThreadsPerRow>(
      threadIdx.x % kThreadsPerRow * 2, kThreadsPerRow * 2,
      [&](int rank, int column) {
        return *reinterpret_cast<const float2*>(states + rank * kOwnRows * kExchangeStride + column);
      },
      [&](int column, float2 sums, float row_max, float row_sum) {
        store_pair(work, blockIdx.z * kOwnRows + own, column, sums, row_max, row_sum);
      });
}

// What becomes of two columns of a row when the block has merged all it knows of it.
__device__ __forceinline__ void finish_pair(const Work& work, const Mailbox& mailbox, int row, int column, float2 sums,
                                            float row_max, float row_sum) {
  if constexpr (kCluster == 1) {
    store_pair(work, row, column, sums, row_max, row_sum);
  } else {
    mailbox.send_pair(row, column, sums, row_max, row_sum);
  }
}

// Merges the states of the key groups, in the order of the groups. Each puts its own where its tiles were.
__device__ __forceinline__ void merge_groups(const Work& work, const Mailbox& mailbox, const State& state,
                                             const Role& role, unsigned char* arena) {
  float* own = reinterpret_cast<float*>(arena + role.key_group * kGroupBytes);
  if constexpr (kStages > 0) crew_barrier(role);  // its tiles are no longer needed by anyone
  for_each_pair(state, role, [&](int row, int column, float2 sums, int half_tile) {
    put_pair(own, row, column, sums, state.row_max[half_tile], state.row_sum[half_tile]);
  });
  constexpr int kThreadsPerRow = kThreads / kTileM;
  const int row = threadIdx.x / kThreadsPerRow;
  const float* states = reinterpret_cast<const float*>(arena) + row * kExchangeStride;
  __syncthreads();
  merge_pairs<kKeyGroups, kD / 2 / kThreadsPerRow>(
      threadIdx.x % kThreadsPerRow * 2, kThreadsPerRow * 2,
      [&](int group, int column) {
        return *reinterpret_cast<const float2*>(states + group * (kGroupBytes / 4) + column);
      },
      [&](int column, float2 sums, float row_max, float row_sum) {
        finish_pair(work, mailbox, row, column, sums, row_max, row_sum);
      });
}

// Finishes the rows from states of which each has its own columns.
__device__ __forceinline__ void finish_columns(const Work& work, const Mailbox& mailbox, const exchange::State& state,
                                               const Role& role) {
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int row = role.first_row + half_tile * 8 + role.lane / kQuad;
    const int c = 2 * half_tile;
#pragma unroll
    for (int n = 0; n < exchange::kColumns / 8; ++n) {
      finish_pair(work, mailbox, row, role.key_group * exchange::kColumns + n * 8 + role.lane % kQuad * 2,
                  make_float2(state.sums[n][c], state.sums[n][c + 1]), state.row_max[half_tile],
                  state.row_sum[half_tile]);
    }
  }
}

__device__ __forceinline__ void attention_exchanged(const Work& work, const Role& role, float scale,
                                                    unsigned char* arena, const Mailbox& mailbox) {
  const exchange::Board board(arena + kBoardOffset);
  exchange::State state;
  if constexpr (kStages == 0) {
    exchange::attention_direct(work, role, arena, board, scale, state);
  } else {
    exchange::attention_staged(work, role, Tiles(arena, role), board, scale, state);
  }
  if constexpr (kCluster > 1) mailbox.wait_until_open();
  finish_columns(work, mailbox, state, role);
}

__device__ __forceinline__ void attention_merged(const Work& work, const Role& role, float scale, unsigned char* arena,
                                                 const Mailbox& mailbox) {
  State state;
  if constexpr (kStages == 0) {
    direct::attention(work, role, scale, state);
  } else {
    const Tiles tiles(arena, role);
    Fragment queries[kD / 16];
    load_queries(queries, work, role);
    if constexpr (kOverlap) {
      warpgroup::attention_overlapped(work, role, tiles, queries, scale, state);
    } else {
      attention_staged(work, role, tiles, queries, scale, state);
    }
    if constexpr (kStages > 1) cp_async_wait<0>();
  }

#pragma unroll
  for (float& sum : state.row_sum) sum = lane_sum<kQuad>(sum);
  if constexpr (kCluster > 1) mailbox.wait_until_open();
  if constexpr (kKeyGroups > 1) {
    merge_groups(work, mailbox, state, role, arena);
  } else {
    for_each_pair(state, role, [&](int row, int column, float2 sums, int half_tile) {
      finish_pair(work, mailbox, row, column, sums, state.row_max[half_tile], state.row_sum[half_tile]);
    });
  }
}

__device__ __forceinline__ void attention(const Work& work, float scale, unsigned char* arena) {
  const Role role;
  const Mailbox mailbox{reinterpret_cast<float*>(arena + kMailboxOffset)};
  if constexpr (kCluster > 1) mailbox.open();
  if constexpr (kExchange) {
    attention_exchanged(work, role, scale * kLog2E, arena, mailbox);
  } else {
    attention_merged(work, role, scale * kLog2E, arena, mailbox);
  }
  if constexpr (kCluster > 1) merge_cluster(work, mailbox);
}

}  // namespace tensor

// Grid: tiles of queries, heads, shares of the keys. Left alone, the compiler spills a few registers to fit more blocks
// on an SM than the small grids have.
#if MERGE != 0 && KV_SPLITS > 1
#define IN_CLUSTERS __cluster_dims__(1, 1, KV_SPLITS)
#else
#define IN_CLUSTERS
#endif
extern "C" __global__ void IN_CLUSTERS __launch_bounds__(kThreads, kBlocksPerSm)
    attention_forward(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
                      half* __restrict__ out, float* __restrict__ partial, int S, float scale) {
  extern __shared__ __align__(1024) unsigned char arena[];
  const Work work = find_work(q, k, v, out, partial, kFixedS > 0 ? kFixedS : S);
  if constexpr (kPath == kScalar) {
    scalar::attention(work, scale, arena);
  } else {
    tensor::attention(work, scale, arena);
  }
}

// Merges the shares of each row; one warp a row, two columns a lane. The first share always has a key, so the largest
// maximum is finite, and an empty share (maximum -inf) gets weight 0.
extern "C" __global__ void __launch_bounds__(kCombineRows* kLanes)
    attention_combine(const float* __restrict__ partial, half* __restrict__ out, int B, int H, int S) {
  const int rows = B * H * S;
  const int row = blockIdx.x * kCombineRows + threadIdx.x / kLanes;
  const int column = threadIdx.x % kLanes * 2;
  if (row >= rows) return;

  const float* states[kSplits];
  float row_max = minus_infinity();
#pragma unroll
  for (int split = 0; split < kSplits; ++split) {
    states[split] = partial + (static_cast<long long>(split) * rows + row) * kPartialStride;
    row_max = fmaxf(row_max, states[split][kD]);
  }
  float row_sum = 0.0f;
  float2 sums = {};
#pragma unroll
  for (int split = 0; split < kSplits; ++split) {
    const float shrink = fast_exp2(states[split][kD] - row_max);
    const float2 pair = *reinterpret_cast<const float2*>(states[split] + column);
    row_sum = fmaf(shrink, states[split][kD + 1], row_sum);
    sums.x = fmaf(shrink, pair.x, sums.x);
    sums.y = fmaf(shrink, pair.y, sums.y);
  }
  const float inverse = fast_reciprocal(row_sum);
  *reinterpret_cast<half2*>(out + static_cast<long long>(row) * kD + column) =
      __floats2half2_rn(sums.x * inverse, sums.y * inverse);
}
