// Scaled dot-product attention, forward, not causal: out = softmax(q k^T * scale) v for each head of [B, H, S, 64] fp16
// tensors.
//
// A block owns TILE_M queries of one head and walks over one of KV_SPLITS shares of the keys, TILE_N keys a step, with
// an online softmax: per row a running maximum, a running sum and an unnormalised accumulator, all fp32. Two paths
// share the copies and the output: plain FMAs (MMA=0, namespace scalar) and tensor cores (MMA=1, namespace tensor).
// With more than one share, each writes its state to `partial` and attention_combine merges them in a fixed order, so
// that the result is the same bits every time.
#include <cuda_fp16.h>

constexpr bool kTensorCores = MMA == 1;
constexpr int kTileM = TILE_M;      // queries a block
constexpr int kTileN = TILE_N;      // keys a step
constexpr int kWarps = WARPS;       // warps a block
constexpr int kSplits = KV_SPLITS;  // shares of the keys, one block each
constexpr int kVector = VECTOR;     // halves a thread reads from global memory at once
constexpr int kPad = PAD;           // halves behind each row of a tile in shared memory
constexpr int kStages = STAGES;     // 1: copy, then compute; 2: the next step's copy runs during this step's compute

constexpr int kD = 64;  // head dimension
constexpr int kLanes = 32;
constexpr int kThreads = kWarps * kLanes;
constexpr int kStride = kD + kPad;             // halves from row to row of a tile in shared memory
constexpr int kTileHalves = kTileN * kStride;  // one tile of keys, or of values
constexpr int kPartialStride = kD + 2;         // accumulator, maximum, sum
constexpr int kCombineRows = 4;                // rows a block of attention_combine: one a warp

static_assert(kTileM % 16 == 0 && kTileM <= 16 * kWarps, "a warp keeps the state of at most 16 rows in registers");
static_assert(kTileN % 64 == 0, "four key groups of 16, two keys a lane");
static_assert(kStride % 8 == 0, "rows of a tile must stay 16-byte aligned for ldmatrix and uint4");
static_assert(kStages == 1 || (kTensorCores && kVector >= 2), "cp.async copies 4, 8 or 16 bytes");

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// 2^x in one instruction; a result below the normal range is 0, -inf gives 0.
__device__ __forceinline__ float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Starts a copy of kBytes to shared memory, or fills with zeros without reading when not `valid`.
template <int kBytes>
__device__ __forceinline__ void cp_async(void* to, const void* from, bool valid) {
  const int read = valid ? kBytes : 0;
  if constexpr (kBytes == 16) {  // only 16 bytes may pass by L1
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(read)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from), "n"(kBytes),
                 "r"(read)
                 : "memory");
  }
}

__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most kPending of this thread's committed groups are still on their way.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Four 8x8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void ldmatrix(unsigned (&fragment)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_transposed(unsigned (&fragment)[4], const half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(fragment[0]), "=r"(fragment[1]), "=r"(fragment[2]), "=r"(fragment[3])
               : "r"(shared_address(row))
               : "memory");
}

// c += a b for a 16x16 (row major) and b 16x8 (column major), fp32 sums.
__device__ __forceinline__ void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
struct VectorOf<4> {
  using Type = uint2;
};
template <>
struct VectorOf<8> {
  using Type = uint4;
};
using Vector = VectorOf<kVector>::Type;

// Hands every vector of kRows rows of kD halves to `store(row, column, vector)`, spread over the block. Rows from
// `valid_rows` on are zeros and are not read. Loads are issued in batches: each batch waits for memory once.
template <int kRows, typename Store>
__device__ __forceinline__ void load_rows(const half* rows, int valid_rows, Store store) {
  constexpr int kPerRow = kD / kVector;
  constexpr int kPerThread = kRows * kPerRow / kThreads;
  constexpr int kBatch = kPerThread < 8 ? kPerThread : 8;
  static_assert(kRows * kPerRow % kThreads == 0 && kPerThread % kBatch == 0, "every thread copies the same share");
#pragma unroll 1
  for (int first = threadIdx.x; first < kRows * kPerRow; first += kBatch * kThreads) {
    Vector batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kThreads;
      batch[i] = Vector{};
      if (index / kPerRow < valid_rows) batch[i] = reinterpret_cast<const Vector*>(rows)[index];
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kThreads;
      store(index / kPerRow, index % kPerRow * kVector, batch[i]);
    }
  }
}

// Puts kRows rows into a tile of shared memory. With two stages the copy is only started.
template <int kRows>
__device__ __forceinline__ void copy_tile(half* tile, const half* rows, int valid_rows) {
  if constexpr (kStages == 1) {
    load_rows<kRows>(rows, valid_rows, [tile](int row, int column, Vector vector) {
      *reinterpret_cast<Vector*>(tile + row * kStride + column) = vector;
    });
  } else {
    constexpr int kPerRow = kD / kVector;
#pragma unroll 8
    for (int index = threadIdx.x; index < kRows * kPerRow; index += kThreads) {
      const int row = index / kPerRow;
      const bool valid = row < valid_rows;
      cp_async<kVector * 2>(tile + row * kStride + index % kPerRow * kVector, rows + (valid ? index * kVector : 0),
                            valid);
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

__device__ __forceinline__ Work find_work(const half* q, const half* k, const half* v, half* out, float* partial,
                                          int S) {
  const int first_row = blockIdx.x * kTileM;
  const int share = (S + kSplits - 1) / kSplits;
  const int first_key = min(static_cast<int>(blockIdx.z) * share, S);
  const long long head = static_cast<long long>(blockIdx.y) * S;  // the head's first row in the tensors
  const long long state = static_cast<long long>(blockIdx.z) * gridDim.y * S + head + first_row;
  return Work{q + (head + first_row) * kD,   k + (head + first_key) * kD,      v + (head + first_key) * kD,
              out + (head + first_row) * kD, partial + state * kPartialStride, min(S - first_row, kTileM),
              min(S - first_key, share)};
}

// Writes two neighbouring columns of a row's result: finished, or as the state that attention_combine merges.
__device__ __forceinline__ void store_pair(const Work& work, int row, int column, float2 sums, float row_max,
                                           float row_sum) {
  if (row >= work.rows) return;
  if constexpr (kSplits == 1) {
    const float inverse = 1.0f / row_sum;
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
__device__ __forceinline__ float exponent_base(float row_max) { return row_max == minus_infinity() ? 0.0f : row_max; }

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
        values(keys + kTileHalves) {}
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
  load_rows<kTileM>(work.q, work.rows, [queries, scale](int row, int column, Vector vector) {
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
    copy_tile<kTileN>(shared.keys, work.k + step * kTileN * kD, valid_keys);
    copy_tile<kTileN>(shared.values, work.v + step * kTileN * kD, valid_keys);
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
// rows of their own, so they split the keys and the block merges their states at the end. Scores leave the tensor cores
// in the layout in which the weights enter them again: a pair of score fragments is one fragment of weights, in
// registers.
//
// In a 16x8 accumulator fragment a thread holds rows lane / 4 (c[0], c[1]) and lane / 4 + 8 (c[2], c[3]), columns
// lane % 4 * 2 and the next; the four lanes of a quad share their rows.
namespace tensor {

constexpr int kRowGroups = kTileM / 16;
constexpr int kKeyGroups = kWarps / kRowGroups;
constexpr int kKeys = kTileN / kKeyGroups;  // keys a warp and step
constexpr int kQuad = 4;

struct Shared {
  half* queries;  // [kTileM][kStride]
  half* tiles;    // [kStages][keys, values][kTileN][kStride]

  __device__ __forceinline__ explicit Shared(unsigned char* arena)
      : queries(reinterpret_cast<half*>(arena)), tiles(queries + kTileM * kStride) {}
  __device__ __forceinline__ half* keys(int step) const { return tiles + step % kStages * 2 * kTileHalves; }
  __device__ __forceinline__ half* values(int step) const { return keys(step) + kTileHalves; }
};

struct State {
  float sums[kD / 8][4] = {};
  float row_max[2] = {minus_infinity(), minus_infinity()};
  float row_sum[2] = {};  // of this thread's columns only; reduced over the quad once at the end
};

using Fragment = unsigned[4];

__device__ __forceinline__ unsigned pack(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

// The row that this lane addresses when ldmatrix reads a 16x16 piece: by matrices down the rows first, ...
__device__ __forceinline__ const half* rows_first(const half* piece, int lane) {
  return piece + lane % 16 * kStride + lane / 16 * 8;
}
// ... or along the columns first.
__device__ __forceinline__ const half* columns_first(const half* piece, int lane) {
  return piece + (lane / 16 * 8 + lane % 8) * kStride + lane / 8 % 2 * 8;
}

__device__ __forceinline__ void load_queries(Fragment (&queries)[kD / 16], const half* rows, int lane) {
#pragma unroll
  for (int d = 0; d < kD / 16; ++d) ldmatrix(queries[d], rows_first(rows + d * 16, lane));
}

__device__ __forceinline__ void score(float (&scores)[kKeys / 8][4], const Fragment (&queries)[kD / 16],
                                      const half* keys, int lane) {
#pragma unroll
  for (int d = 0; d < kD / 16; ++d) {
#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      Fragment key;
      ldmatrix(key, columns_first(keys + n * 16 * kStride + d * 16, lane));
      mma_m16n8k16(scores[2 * n], queries[d], key[0], key[1]);
      mma_m16n8k16(scores[2 * n + 1], queries[d], key[2], key[3]);
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

// Turns scores into weights in place and rescales the state to the new maxima. `scale` is positive, so the largest raw
// score is the largest scaled one.
__device__ __forceinline__ void weigh(State& state, float (&scores)[kKeys / 8][4], float scale) {
#pragma unroll
  for (int half_tile = 0; half_tile < 2; ++half_tile) {
    const int c = 2 * half_tile;
    float largest = minus_infinity();
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) largest = fmaxf(largest, fmaxf(scores[n][c], scores[n][c + 1]));
    largest = fmaxf(state.row_max[half_tile], lane_max<kQuad>(largest) * scale);
    const float base = exponent_base(largest);
    const float shrink = fast_exp2(state.row_max[half_tile] - base);
    state.row_max[half_tile] = largest;

    float sum = 0.0f;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      scores[n][c] = fast_exp2(fmaf(scores[n][c], scale, -base));
      scores[n][c + 1] = fast_exp2(fmaf(scores[n][c + 1], scale, -base));
      sum += scores[n][c] + scores[n][c + 1];
    }
    state.row_sum[half_tile] = fmaf(state.row_sum[half_tile], shrink, sum);
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      state.sums[n][c] *= shrink;
      state.sums[n][c + 1] *= shrink;
    }
  }
}

__device__ __forceinline__ void accumulate(State& state, const float (&weights)[kKeys / 8][4], const half* values,
                                           int lane) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    const float(&left)[4] = weights[2 * k];
    const float(&right)[4] = weights[2 * k + 1];
    const Fragment weight = {pack(left[0], left[1]), pack(left[2], left[3]), pack(right[0], right[1]),
                             pack(right[2], right[3])};
#pragma unroll
    for (int n = 0; n < kD / 16; ++n) {
      Fragment value;
      ldmatrix_transposed(value, rows_first(values + k * 16 * kStride + n * 16, lane));
      mma_m16n8k16(state.sums[2 * n], weight, value[0], value[1]);
      mma_m16n8k16(state.sums[2 * n + 1], weight, value[2], value[3]);
    }
  }
}

// Calls visit(row of the tile, column, sums, half of the fragment) for each pair of columns that the thread holds.
template <typename Visit>
__device__ __forceinline__ void for_each_pair(const State& state, int first_row, int lane, Visit visit) {
#pragma unroll
  for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
    for (int half_tile = 0; half_tile < 2; ++half_tile) {
      visit(first_row + half_tile * 8 + lane / kQuad, n * 8 + lane % kQuad * 2,
            make_float2(state.sums[n][2 * half_tile], state.sums[n][2 * half_tile + 1]), half_tile);
    }
  }
}

// Merges the states of the key groups, in the order of the groups, through shared memory that the tiles no longer need.
__device__ __forceinline__ void merge_and_store(const Work& work, const State& state, int first_row, int key_group,
                                                int lane, float* exchange) {
  static_assert(kKeyGroups * kTileM * kPartialStride * 4 <= (kTileM * kStride + 2 * kStages * kTileHalves) * 2,
                "must fit");
  for_each_pair(state, first_row, lane, [&](int row, int column, float2 sums, int half_tile) {
    float* slot = exchange + (key_group * kTileM + row) * kPartialStride;
    *reinterpret_cast<float2*>(slot + column) = sums;
    if (column == 0) {
      *reinterpret_cast<float2*>(slot + kD) = make_float2(state.row_max[half_tile], state.row_sum[half_tile]);
    }
  });
  __syncthreads();

#pragma unroll 1
  for (int index = threadIdx.x; index < kTileM * kD / 2; index += kThreads) {
    const int row = index / (kD / 2);
    const int column = index % (kD / 2) * 2;
    const float* slots = exchange + row * kPartialStride;
    float row_max = minus_infinity();
#pragma unroll
    for (int group = 0; group < kKeyGroups; ++group) {
      row_max = fmaxf(row_max, slots[group * kTileM * kPartialStride + kD]);
    }
    const float base = exponent_base(row_max);
    float row_sum = 0.0f;
    float2 sums = {};
#pragma unroll
    for (int group = 0; group < kKeyGroups; ++group) {
      const float* slot = slots + group * kTileM * kPartialStride;
      const float shrink = fast_exp2(slot[kD] - base);
      row_sum = fmaf(shrink, slot[kD + 1], row_sum);
      sums.x = fmaf(shrink, slot[column], sums.x);
      sums.y = fmaf(shrink, slot[column + 1], sums.y);
    }
    store_pair(work, row, column, sums, row_max, row_sum);
  }
}

__device__ __forceinline__ void copy_step(const Work& work, const Shared& shared, int step) {
  const int valid_keys = work.keys_in_step(step);
  copy_tile<kTileN>(shared.keys(step), work.k + step * kTileN * kD, valid_keys);
  copy_tile<kTileN>(shared.values(step), work.v + step * kTileN * kD, valid_keys);
}

__device__ __forceinline__ void attention(const Work& work, float scale, unsigned char* arena) {
  const int lane = threadIdx.x % kLanes;
  const int warp = threadIdx.x / kLanes;
  const int first_row = warp % kRowGroups * 16;
  const int key_group = warp / kRowGroups;
  const int first_key = key_group * kKeys;
  const Shared shared(arena);
  const int steps = work.steps();
  Fragment queries[kD / 16];
  State state;

  copy_tile<kTileM>(shared.queries, work.q, work.rows);
  if constexpr (kStages > 1) {
    if (steps > 0) copy_step(work, shared, 0);
    cp_async_commit();
  }
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    if constexpr (kStages > 1) {
      if (step + 1 < steps) copy_step(work, shared, step + 1);
      cp_async_commit();  // possibly empty: then the wait below counts the same in every step
      cp_async_wait<1>();
    } else {
      copy_step(work, shared, step);
    }
    __syncthreads();
    if (step == 0) load_queries(queries, shared.queries + first_row * kStride, lane);

    float scores[kKeys / 8][4] = {};
    score(scores, queries, shared.keys(step) + first_key * kStride, lane);
    const int valid_keys = work.keys_in_step(step);
    if (valid_keys < kTileN) mask(scores, valid_keys - first_key, lane);
    weigh(state, scores, scale * kLog2E);
    accumulate(state, scores, shared.values(step) + first_key * kStride, lane);
    __syncthreads();  // a later copy, or the merge, overwrites the tiles
  }
  if constexpr (kStages > 1) cp_async_wait<0>();

#pragma unroll
  for (float& sum : state.row_sum) sum = lane_sum<kQuad>(sum);
  if constexpr (kKeyGroups > 1) {
    if (steps == 0) __syncthreads();  // the copy of the queries is the only one before the merge then
    merge_and_store(work, state, first_row, key_group, lane, reinterpret_cast<float*>(arena));
  } else {
    for_each_pair(state, first_row, lane, [&](int row, int column, float2 sums, int half_tile) {
      store_pair(work, row, column, sums, state.row_max[half_tile], state.row_sum[half_tile]);
    });
  }
}

}  // namespace tensor

// Grid: tiles of queries, heads, shares of the keys. One block an SM is enough to ask for: left alone, the compiler
// spills a few registers to fit more blocks than the small grids have.
extern "C" __global__ void __launch_bounds__(kThreads, 1)
    attention_forward(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v,
                      half* __restrict__ out, float* __restrict__ partial, int S, float scale) {
  extern __shared__ __align__(16) unsigned char arena[];
  const Work work = find_work(q, k, v, out, partial, S);
  if constexpr (kTensorCores) {
    tensor::attention(work, scale, arena);
  } else {
    scalar::attention(work, scale, arena);
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
  const float inverse = 1.0f / row_sum;
  *reinterpret_cast<half2*>(out + static_cast<long long>(row) * kD + column) =
      __floats2half2_rn(sums.x * inverse, sums.y * inverse);
}
