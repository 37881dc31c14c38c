// c = a b for B pairs of row-major fp16 matrices a [M, K] and b [K, N], c [M, N], with fp32 sums.
//
// A block owns a tile of TILE_M x TILE_N of c, or several one after another (PERSISTENT=1), and walks along K, TILE_K a
// step, through tiles of a and b in shared memory. Three paths share the copies: plain FMAs (MMA=0, namespace scalar),
// mma.sync of single warps (MMA=1, namespace warp) and wgmma of warpgroups (MMA=2, sm_90a, namespace warpgroup). Copies
// are made by the warps that compute, or by four of their own (COPIERS=4), which run ahead as far as there are stages.
#include <cuda_fp16.h>

enum Path { kScalar = 0, kMma = 1, kWgmma = 2 };
constexpr Path kPath = static_cast<Path>(MMA);
constexpr int kTileM = TILE_M;                                 // rows of c a block
constexpr int kTileN = TILE_N;                                 // columns of c a block
constexpr int kTileK = TILE_K;                                 // what a step sums over
constexpr int kWarps = TILE_M == 192 ? WARPS * 3 / 2 : WARPS;  // warps a block
constexpr int kVector = VECTOR;                                // halves a thread reads from global memory at once
constexpr bool kSpread = SPREAD != 0;                          // tiles in shared memory are spread over the banks
constexpr int kStages = STAGES;   // steps in shared memory: 1: copy, then compute; more: cp.async runs ahead
constexpr int kGroupM = GROUP_M;  // tiles down c that are walked before the next column of tiles: they share b
constexpr int kStore = STORE;     // halves a thread writes at once
constexpr int kBlocksPerSm = BLOCKS_PER_SM;    // blocks an SM that the registers must allow
constexpr bool kPersistent = PERSISTENT != 0;  // as many blocks as run at once: each takes tile after tile
constexpr int kCopiers = COPIERS;              // warps that do nothing but copy; 0: those that compute do

constexpr int kLanes = 32;
constexpr int kThreads = kWarps * kLanes;  // that compute
constexpr int kCopyThreads = kCopiers > 0 ? kCopiers * kLanes : kThreads;
constexpr int kFirstCopyThread = kCopiers > 0 ? kThreads : 0;
constexpr bool kAsync = kStages > 1;

static_assert(kTileM * kTileN <= 4096 * kWarps && kTileM * kTileN <= 49152, "at most 128 sums a thread");
static_assert(!kAsync || kVector >= 2, "cp.async copies 4, 8 or 16 bytes");
static_assert(!kPersistent || kAsync, "the copies of a tile begin during the one before");
static_assert(kCopiers == 0 || (kCopiers == 4 && kAsync && kPath == kWgmma), "a warpgroup gives its registers away");

// Steps whose products may still be computed while those of the next one are issued.
constexpr int kLag = kPath == kWgmma && kStages >= 3 ? 1 : 0;
constexpr int kAhead = kStages - 1 - kLag;  // steps that cp.async runs ahead: the stages that no product is read from
static_assert(!kAsync || kAhead >= 1, "a stage to fill");

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
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

// Barriers in shared memory, of 8 bytes. Their phases alternate: `parity` is 0 for the first.
constexpr int kBarrierBytes = 8;

__device__ __forceinline__ void barrier_init(unsigned barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void barrier_arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__device__ __forceinline__ void barrier_wait(unsigned barrier, unsigned parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

template <int kHalves>
struct alignas(kHalves * 2) Pack {
  half at[kHalves];
};

// Where a tile has its halves in shared memory. For ldmatrix and plain loads: row after row, spread by 8 halves behind
// each. For wgmma: column after column of 8x8 core matrices; spread, panels of 64 columns, in these row after row with
// the vectors of 8 halves of each row swapped as the row's number says (its swizzle of 128 bytes).
template <int kRows, int kColumns>
struct TileLayout {
  static constexpr int kStride = kColumns + (kSpread ? 8 : 0);
  static constexpr int kCoreColumn = kRows * 8;  // halves from a column of core matrices to the next
  static constexpr int kPanelColumns = 64;
  static constexpr int kPanel = kRows * kPanelColumns;
  static_assert(kPath != kWgmma || kColumns % kPanelColumns == 0);
  static constexpr int kHalves = kRows * (kPath == kWgmma ? kColumns : kStride);

  __device__ static __forceinline__ int offset(unsigned row, unsigned column) {
    if constexpr (kPath != kWgmma) return row * kStride + column;
    if constexpr (kSpread) {
      const int swap = row % 8 * 8;
      return column / kPanelColumns * kPanel + row * kPanelColumns + (column % kPanelColumns ^ swap);
    }
    return column / 8 * kCoreColumn + row * 8 + column % 8;
  }
};
using LayoutA = TileLayout<kTileM, kTileK>;
using LayoutB = TileLayout<kTileK, kTileN>;
constexpr int kStageHalves = LayoutA::kHalves + LayoutB::kHalves;

// A row-major matrix in global memory.
struct Matrix {
  const half* data;
  int rows;
  int columns;

  // Every row starts on a vector boundary.
  __device__ __forceinline__ bool aligned() const { return columns % kVector == 0; }

  // kVector halves from (row, column) on; what is outside of the matrix is 0.
  __device__ __forceinline__ Pack<kVector> load(int row, int column) const {
    const half* from = data + static_cast<long long>(row) * columns + column;
    Pack<kVector> pack = {};
    if (aligned()) {
      if (row < rows && column < columns) pack = *reinterpret_cast<const Pack<kVector>*>(from);
    } else {
#pragma unroll
      for (int i = 0; i < kVector; ++i) {
        if (row < rows && column + i < columns) pack.at[i] = from[i];
      }
    }
    return pack;
  }
};

// Copies the tile of the matrix at (row0, column0), through registers. Loads are issued in batches: each batch waits
// for memory once.
template <int kRows, int kColumns>
__device__ __forceinline__ void copy_through_registers(half* tile, const Matrix& matrix, int row0, int column0) {
  using Layout = TileLayout<kRows, kColumns>;
  constexpr int kPerRow = kColumns / kVector;
  constexpr int kVectors = kRows * kPerRow;
  constexpr int kPerThread = (kVectors + kCopyThreads - 1) / kCopyThreads;
  constexpr int kMost = kAsync ? 2 : 8;  // beside cp.async this is only for rows on no vector boundary: registers count
  constexpr int kBatch = kPerThread < kMost ? kPerThread : kMost;
  constexpr bool kWhole = kVectors < kCopyThreads || kVectors % (kBatch * kCopyThreads) == 0;
#pragma unroll 1
  for (int first = threadIdx.x - kFirstCopyThread; first < kVectors; first += kBatch * kCopyThreads) {
    Pack<kVector> batch[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kCopyThreads;
      if (!kWhole && index >= kVectors) break;
      batch[i] = matrix.load(row0 + index / kPerRow, column0 + index % kPerRow * kVector);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int index = first + i * kCopyThreads;
      if (!kWhole && index >= kVectors) break;
      *reinterpret_cast<Pack<kVector>*>(tile + Layout::offset(index / kPerRow, index % kPerRow * kVector)) = batch[i];
    }
  }
}

// Starts the copy of the tile at (row0, column0) of an aligned matrix.
template <int kRows, int kColumns>
__device__ __forceinline__ void start_copy(half* tile, const Matrix& matrix, int row0, int column0) {
  using Layout = TileLayout<kRows, kColumns>;
  constexpr int kPerRow = kColumns / kVector;
  constexpr int kRowsAtOnce = kCopyThreads / kPerRow;
  static_assert(kCopyThreads % kPerRow == 0, "a thread stays in its column");
  const unsigned row = (threadIdx.x - kFirstCopyThread) / kPerRow;
  const unsigned column = (threadIdx.x - kFirstCopyThread) % kPerRow * kVector;
  if (kRowsAtOnce > kRows && row >= kRows) return;
  constexpr bool kWhole = kRowsAtOnce > kRows || kRows % kRowsAtOnce == 0;
  const half* from = matrix.data + static_cast<long long>(row0 + row) * matrix.columns + column0 + column;
  const bool inside = column0 + static_cast<int>(column) < matrix.columns;
  const unsigned to = shared_address(tile);
  const unsigned first = to + 2 * Layout::offset(row, column);
  // The swizzles repeat every eight rows; all else is linear in the row.
  constexpr bool kLinear = kPath != kWgmma || !kSpread || kRowsAtOnce % 8 == 0;
#pragma unroll
  for (int i = 0; i < kRows; i += kRowsAtOnce) {
    if (!kWhole && row + i >= kRows) break;
    const bool valid = inside && row0 + static_cast<int>(row) + i < matrix.rows;
    cp_async<kVector * 2>(kLinear ? first + 2 * Layout::offset(i, 0) : to + 2 * Layout::offset(row + i, column),
                          valid ? from + static_cast<long long>(i) * matrix.columns : matrix.data, valid);
  }
}

// The matrices, and their tiles in the order in which blocks take them.
struct Problem {
  const half* a;
  const half* b;
  half* c;
  int M;
  int N;
  int K;

  __device__ __forceinline__ int steps() const { return (K + kTileK - 1) / kTileK; }
};

// A tile of c, at (row0, column0) of the matrices of its place in the batch.
struct Tile {
  Matrix a;
  Matrix b;
  half* c;
  int row0;
  int column0;
};

// Matrix by matrix, tiles go by groups of kGroupM down c, and inside a group down first: blocks that run together then
// read few rows of a and few columns of b.
__device__ __forceinline__ Tile find_tile(const Problem& problem, int index) {
  const int tiles_m = (problem.M + kTileM - 1) / kTileM;
  const int tiles_n = (problem.N + kTileN - 1) / kTileN;
  const int matrix = index / (tiles_m * tiles_n);
  const int inside = index - matrix * tiles_m * tiles_n;
  const int group = inside / (kGroupM * tiles_n);
  const int height = min(tiles_m - group * kGroupM, kGroupM);
  const int place = inside - group * kGroupM * tiles_n;
  return Tile{{problem.a + static_cast<long long>(matrix) * problem.M * problem.K, problem.M, problem.K},
              {problem.b + static_cast<long long>(matrix) * problem.K * problem.N, problem.K, problem.N},
              problem.c + static_cast<long long>(matrix) * problem.M * problem.N,
              (group * kGroupM + place % height) * kTileM,
              place / height * kTileN};
}

// The steps' tiles in shared memory, and their coming and going: by cp.async, or, where the rows of a matrix start on
// no vector boundary, through registers. Copies run ahead of the products, with PERSISTENT=1 into the block's next tile
// of c. With COPIERS=4 two barriers a stage say that it is full or that it was read.
template <bool kByCpAsync>
struct Pipeline {
  // Groups of copies that a warp that only copies leaves on their way.
  static constexpr int kOnTheWay = kStages - 2;

  const Problem& problem;
  int tiles;        // of c, of all blocks
  half* first;      // [kStages][a, b]
  Tile source;      // what is copied: a tile of c, ...
  int source_tile;  // ... its number, ...
  int source_step;  // ... and the next step
  unsigned step;    // that is computed, counted over all tiles of this block

  __device__ __forceinline__ Pipeline(const Problem& problem, int tiles, half* first)
      : problem(problem),
        tiles(tiles),
        first(first),
        source(find_tile(problem, blockIdx.x)),
        source_tile(blockIdx.x),
        source_step(0),
        step(0) {
    if constexpr (kCopiers > 0) {
      if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) {
          barrier_init(full(i), kCopiers);
          barrier_init(empty(i), kWarps);
        }
      }
      __syncthreads();
    } else if constexpr (kAsync) {  // all stages are free
#pragma unroll 1
      for (int i = 0; i < kStages; ++i) fetch(i);
    }
  }

  __device__ __forceinline__ unsigned full(unsigned number) const {
    return shared_address(first + kStages * kStageHalves) + number % kStages * kBarrierBytes;
  }
  __device__ __forceinline__ unsigned empty(unsigned number) const {
    return full(number) + kStages * kBarrierBytes;
  }

  // What a warp does that only copies: step after step, each as soon as its stage was read.
  __device__ __forceinline__ void copy_all() {
    unsigned number = 0;
    unsigned complete = 0;  // steps of which the others know
    const auto tell = [&] {
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      __syncwarp();
      if (threadIdx.x % kLanes == 0) barrier_arrive(full(complete));
      ++complete;
    };
    while (source_step < problem.steps()) {
      if (number >= kStages) barrier_wait(empty(number), (number / kStages - 1) % 2);
      fetch(number++);
      if (number > kOnTheWay) {
        cp_async_wait<kOnTheWay>();
        tell();
      }
    }
    cp_async_wait<0>();
    while (complete < number) tell();
  }

  // This warp has read what the stage of a step held.
  __device__ __forceinline__ void release(unsigned number) const {
    if constexpr (kCopiers > 0) {
      if (threadIdx.x % kLanes == 0) barrier_arrive(empty(number));
    }
  }

  __device__ __forceinline__ half* stage(unsigned number) const { return first + number % kStages * kStageHalves; }
  __device__ __forceinline__ const half* a() const { return stage(step); }
  __device__ __forceinline__ const half* b() const { return stage(step) + LayoutA::kHalves; }

  __device__ __forceinline__ void copy(half* to) const {
    const int k = source_step * kTileK;
    if constexpr (kByCpAsync) {
      start_copy<kTileM, kTileK>(to, source.a, source.row0, k);
      start_copy<kTileK, kTileN>(to + LayoutA::kHalves, source.b, k, source.column0);
    } else {
      copy_through_registers<kTileM, kTileK>(to, source.a, source.row0, k);
      copy_through_registers<kTileK, kTileN>(to + LayoutA::kHalves, source.b, k, source.column0);
    }
  }

  // Starts the copy of the next step, if there is one, to a stage. A group is committed in any case: the waits count
  // the same in every step.
  __device__ __forceinline__ void fetch(unsigned number) {
    const int steps = problem.steps();
    if (source_step < steps) {
      copy(stage(number));
      ++source_step;
      if constexpr (kPersistent) {
        if (source_step == steps && source_tile + static_cast<int>(gridDim.x) < tiles) {
          source_tile += gridDim.x;
          source_step = 0;
          source = find_tile(problem, source_tile);
        }
      }
    }
    if constexpr (kAsync) cp_async_commit();
  }

  // Makes what this thread copied visible to all. wgmma reads shared memory by a proxy of its own.
  __device__ __forceinline__ void publish() const {
    if constexpr (kPath == kWgmma) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
  }

  // Calls start(a, b) for every step of a tile of c when its tiles are there, then finish(). kLag of the steps may
  // still be running after it, and their tiles are left alone.
  template <typename Start, typename Finish>
  __device__ __forceinline__ void for_each_step(Start start, Finish finish) {
    const int steps = problem.steps();
#pragma unroll 1
    for (int i = 0; i < steps; ++i) {
      if constexpr (kCopiers > 0) {
        barrier_wait(full(step), step / kStages % 2);
        start(a(), b());
        finish();
        if (i >= kLag) release(step - kLag);
      } else if constexpr (kAsync) {
        if (step > kLag) {
          cp_async_wait<kAhead - 1>();
        } else {
          cp_async_wait<kAhead>();
        }
        publish();
        start(a(), b());
        if (step > kLag) fetch(step + kAhead);  // the first ones are on their way
        finish();
      } else {
        fetch(step);
        publish();
        start(a(), b());
        finish();
        __syncthreads();
      }
      ++step;
    }
  }

  // No product of a tile of c is still being computed.
  __device__ __forceinline__ void finish_tile() const {
    if constexpr (kLag > 0) release(step - 1);
  }
};

// Writes two neighbouring columns of c.
__device__ __forceinline__ void store_pair(half* c, int M, int N, int row, int column, float first, float second) {
  if (row >= M || column >= N) return;
  half* to = c + static_cast<long long>(row) * N + column;
  if (N % 2 == 0) {
    *reinterpret_cast<half2*>(to) = __floats2half2_rn(first, second);
  } else {
    to[0] = __float2half_rn(first);
    if (column + 1 < N) to[1] = __float2half_rn(second);
  }
}

// A thread owns kRows rows, kThreadsM apart, and of each kPairs pairs of columns, 2 * kThreadsN apart.
namespace scalar {

template <typename Pipeline>
__device__ __forceinline__ void multiply(const Problem& problem, int index, Pipeline& pipeline) {
  constexpr int kThreadsN = 16;
  constexpr int kThreadsM = kThreads / kThreadsN;
  constexpr int kRows = kTileM / kThreadsM;
  constexpr int kPairs = kTileN / kThreadsN / 2;
  const int row = threadIdx.x / kThreadsN;
  const int column = threadIdx.x % kThreadsN * 2;
  float2 sums[kRows][kPairs] = {};
  pipeline.for_each_step(
      [&](const half* a, const half* b) {
#pragma unroll 4
        for (int k = 0; k < kTileK; ++k) {
          float2 right[kPairs];
#pragma unroll
          for (int j = 0; j < kPairs; ++j) {
            right[j] =
                __half22float2(*reinterpret_cast<const half2*>(b + LayoutB::offset(k, column + j * 2 * kThreadsN)));
          }
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            const float left = __half2float(a[LayoutA::offset(row + i * kThreadsM, k)]);
#pragma unroll
            for (int j = 0; j < kPairs; ++j) {
              sums[i][j].x = fmaf(left, right[j].x, sums[i][j].x);
              sums[i][j].y = fmaf(left, right[j].y, sums[i][j].y);
            }
          }
        }
      },
      [] {});
  const Tile tile = find_tile(problem, index);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kPairs; ++j) {
      store_pair(tile.c, problem.M, problem.N, tile.row0 + row + i * kThreadsM,
                 tile.column0 + column + j * 2 * kThreadsN, sums[i][j].x, sums[i][j].y);
    }
  }
}

}  // namespace scalar

// In a 16x8 fragment of sums a thread holds rows lane / 4 (the first two) and lane / 4 + 8, columns lane % 4 * 2 and
// the next. Those of wgmma are the same, warp by warp.
using Fragment = unsigned[4];
using Sums = float[4];

// The four lanes of a quad hold a word of four fragments each; afterwards each holds all four words of the fragment of
// its own number.
__device__ __forceinline__ void transpose_in_quad(unsigned (&words)[4], int lane) {
#pragma unroll
  for (int t = 0; t < 4; t += 2) {
    const unsigned got = __shfl_xor_sync(0xffffffffu, lane % 2 == 0 ? words[t + 1] : words[t], 1);
    (lane % 2 == 0 ? words[t + 1] : words[t]) = got;
  }
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const unsigned got = __shfl_xor_sync(0xffffffffu, lane / 2 % 2 == 0 ? words[t + 2] : words[t], 2);
    (lane / 2 % 2 == 0 ? words[t + 2] : words[t]) = got;
  }
}

__device__ __forceinline__ unsigned pack(float low, float high) {
  const half2 pair = __floats2half2_rn(low, high);
  return *reinterpret_cast<const unsigned*>(&pair);
}

template <int kCount>
__device__ __forceinline__ void store_fragments(half* c, int M, int N, int row0, int column0,
                                                const Sums (&sums)[kCount]) {
  const int lane = threadIdx.x % kLanes;
  if (kStore == 8 && kCount % 4 == 0 && N % 8 == 0) {
#pragma unroll
    for (int n = 0; n < kCount / 4 * 4; n += 4) {
      const int column = column0 + (n + lane % 4) * 8;
#pragma unroll
      for (int half_tile = 0; half_tile < 2; ++half_tile) {
        const int row = row0 + lane / 4 + half_tile * 8;
        unsigned words[4];
#pragma unroll
        for (int t = 0; t < 4; ++t) words[t] = pack(sums[n + t][2 * half_tile], sums[n + t][2 * half_tile + 1]);
        transpose_in_quad(words, lane);
        if (row < M && column < N) {
          *reinterpret_cast<uint4*>(c + static_cast<long long>(row) * N + column) =
              make_uint4(words[0], words[1], words[2], words[3]);
        }
      }
    }
    return;
  }
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    const int column = column0 + n * 8 + lane % 4 * 2;
    store_pair(c, M, N, row0 + lane / 4, column, sums[n][0], sums[n][1]);
    store_pair(c, M, N, row0 + lane / 4 + 8, column, sums[n][2], sums[n][3]);
  }
}

// Warps share the tile of c as squarely as it goes.
namespace warp {

__device__ constexpr int warps_down() {
  int down = 1, across = 1;
  while (down * across < kWarps) {
    if (kTileM / down >= kTileN / across) {
      down *= 2;
    } else {
      across *= 2;
    }
  }
  return down;
}
constexpr int kWarpsM = warps_down();
constexpr int kWarpsN = kWarps / kWarpsM;
constexpr int kRows = kTileM / kWarpsM;
constexpr int kColumns = kTileN / kWarpsN;
static_assert(kPath != kMma || (kRows % 16 == 0 && kColumns % 16 == 0), "whole fragments");

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

// c += a b for a 16x16 (row major) and b 16x8 (column major), fp32 sums.
__device__ __forceinline__ void mma_m16n8k16(Sums& c, const Fragment& a, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <typename Pipeline>
__device__ __forceinline__ void multiply(const Problem& problem, int index, Pipeline& pipeline) {
  const int lane = threadIdx.x % kLanes;
  const int row0 = threadIdx.x / kLanes / kWarpsN * kRows;
  const int column0 = threadIdx.x / kLanes % kWarpsN * kColumns;
  Sums sums[kRows / 16][kColumns / 8] = {};
  pipeline.for_each_step(
      [&](const half* tile_a, const half* tile_b) {
        // The row that this lane addresses when ldmatrix reads 16x16 halves, by matrices down the rows first.
        const half* a = tile_a + (row0 + lane % 16) * LayoutA::kStride + lane / 16 * 8;
        const half* b = tile_b + lane % 16 * LayoutB::kStride + column0 + lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < kTileK; k += 16) {
          Fragment left[kRows / 16];
#pragma unroll
          for (int m = 0; m < kRows / 16; ++m) ldmatrix(left[m], a + m * 16 * LayoutA::kStride + k);
#pragma unroll
          for (int n = 0; n < kColumns / 16; ++n) {
            Fragment right;
            ldmatrix_transposed(right, b + k * LayoutB::kStride + n * 16);
#pragma unroll
            for (int m = 0; m < kRows / 16; ++m) {
              mma_m16n8k16(sums[m][2 * n], left[m], right[0], right[1]);
              mma_m16n8k16(sums[m][2 * n + 1], left[m], right[2], right[3]);
            }
          }
        }
      },
      [] {});
  const Tile tile = find_tile(problem, index);
#pragma unroll
  for (int m = 0; m < kRows / 16; ++m) {
    store_fragments(tile.c, problem.M, problem.N, tile.row0 + row0 + m * 16, tile.column0 + column0, sums[m]);
  }
}

}  // namespace warp

// Warpgroups share the rows of the tile of c, 64 at least each, and then its columns.
namespace warpgroup {

constexpr int kGroups = kWarps / 4;
constexpr int kGroupsM = kGroups < kTileM / 64 ? kGroups : kTileM / 64;
constexpr int kGroupsN = kGroups / kGroupsM;
constexpr int kRows = kTileM / kGroupsM;
constexpr int kColumns = kTileN / kGroupsN;
static_assert(kPath != kWgmma || (kRows % 64 == 0 && (kColumns == 128 || kColumns == 256)), "whole products");

__device__ __forceinline__ void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kPending committed groups of products are still being computed.
template <int kPending>
__device__ __forceinline__ void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// How the tensor cores find a matrix of 8x8 core matrices: where it starts, and the bytes from one core matrix (or
// panel of the swizzled layout) to the next in its two directions.
__device__ __forceinline__ unsigned long long describe(const half* start, int leading_bytes, int stride_bytes) {
  constexpr unsigned long long kSwizzle = 1;  // of 128 bytes
  return static_cast<unsigned long long>((shared_address(start) & 0x3ffff) >> 4) |
         static_cast<unsigned long long>(leading_bytes >> 4) << 16 |
         static_cast<unsigned long long>(stride_bytes >> 4) << 32 | (kSpread ? kSwizzle << 62 : 0);
}

constexpr int kCoreBytes = 128;

// 64 rows of a from `row` on, 16 columns from `k` on.
__device__ __forceinline__ unsigned long long describe_a(const half* a, int row, int k) {
  if constexpr (kSpread) return describe(a + row * kTileK + k, 0, 8 * kTileK * 2);
  return describe(a + LayoutA::offset(row, k), LayoutA::kCoreColumn * 2, kCoreBytes);
}

// 16 rows of b from `k` on, kColumns columns from `column` on.
__device__ __forceinline__ unsigned long long describe_b(const half* b, int k, int column) {
  if constexpr (kSpread) {
    return describe(b + column / 64 * LayoutB::kPanel + k * 64, LayoutB::kPanel * 2, 8 * 64 * 2);
  }
  return describe(b + LayoutB::offset(k, column), kCoreBytes, LayoutB::kCoreColumn * 2);
}

// clang-format off
// c += a b, or c = a b where not `add`, for 64x16 a and b with 16 rows, both row major and in shared memory. The result is
// there after commit() and wait(). One instruction has all of a warpgroup's columns: each reads its rows of a again.
__device__ __forceinline__ void wgmma_n128(Sums* c, unsigned long long a, unsigned long long b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, add, 1, 1, 0, 1;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]),
        "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3])
      : "l"(a), "l"(b), "r"(add)
      : "memory");
}

__device__ __forceinline__ void wgmma_n256(Sums* c, unsigned long long a, unsigned long long b, int add) {
  asm volatile(
      "{\n.reg .pred add;\nsetp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, add, 1, 1, 0, 1;\n}\n"
      : "+f"(c[0][0]), "+f"(c[0][1]), "+f"(c[0][2]), "+f"(c[0][3]), "+f"(c[1][0]), "+f"(c[1][1]), "+f"(c[1][2]), "+f"(c[1][3]), "+f"(c[2][0]), "+f"(c[2][1]), "+f"(c[2][2]), "+f"(c[2][3]), "+f"(c[3][0]), "+f"(c[3][1]), "+f"(c[3][2]), "+f"(c[3][3]),
        "+f"(c[4][0]), "+f"(c[4][1]), "+f"(c[4][2]), "+f"(c[4][3]), "+f"(c[5][0]), "+f"(c[5][1]), "+f"(c[5][2]), "+f"(c[5][3]), "+f"(c[6][0]), "+f"(c[6][1]), "+f"(c[6][2]), "+f"(c[6][3]), "+f"(c[7][0]), "+f"(c[7][1]), "+f"(c[7][2]), "+f"(c[7][3]),
        "+f"(c[8][0]), "+f"(c[8][1]), "+f"(c[8][2]), "+f"(c[8][3]), "+f"(c[9][0]), "+f"(c[9][1]), "+f"(c[9][2]), "+f"(c[9][3]), "+f"(c[10][0]), "+f"(c[10][1]), "+f"(c[10][2]), "+f"(c[10][3]), "+f"(c[11][0]), "+f"(c[11][1]), "+f"(c[11][2]), "+f"(c[11][3]),
        "+f"(c[12][0]), "+f"(c[12][1]), "+f"(c[12][2]), "+f"(c[12][3]), "+f"(c[13][0]), "+f"(c[13][1]), "+f"(c[13][2]), "+f"(c[13][3]), "+f"(c[14][0]), "+f"(c[14][1]), "+f"(c[14][2]), "+f"(c[14][3]), "+f"(c[15][0]), "+f"(c[15][1]), "+f"(c[15][2]), "+f"(c[15][3]),
        "+f"(c[16][0]), "+f"(c[16][1]), "+f"(c[16][2]), "+f"(c[16][3]), "+f"(c[17][0]), "+f"(c[17][1]), "+f"(c[17][2]), "+f"(c[17][3]), "+f"(c[18][0]), "+f"(c[18][1]), "+f"(c[18][2]), "+f"(c[18][3]), "+f"(c[19][0]), "+f"(c[19][1]), "+f"(c[19][2]), "+f"(c[19][3]),
        "+f"(c[20][0]), "+f"(c[20][1]), "+f"(c[20][2]), "+f"(c[20][3]), "+f"(c[21][0]), "+f"(c[21][1]), "+f"(c[21][2]), "+f"(c[21][3]), "+f"(c[22][0]), "+f"(c[22][1]), "+f"(c[22][2]), "+f"(c[22][3]), "+f"(c[23][0]), "+f"(c[23][1]), "+f"(c[23][2]), "+f"(c[23][3]),
        "+f"(c[24][0]), "+f"(c[24][1]), "+f"(c[24][2]), "+f"(c[24][3]), "+f"(c[25][0]), "+f"(c[25][1]), "+f"(c[25][2]), "+f"(c[25][3]), "+f"(c[26][0]), "+f"(c[26][1]), "+f"(c[26][2]), "+f"(c[26][3]), "+f"(c[27][0]), "+f"(c[27][1]), "+f"(c[27][2]), "+f"(c[27][3]),
        "+f"(c[28][0]), "+f"(c[28][1]), "+f"(c[28][2]), "+f"(c[28][3]), "+f"(c[29][0]), "+f"(c[29][1]), "+f"(c[29][2]), "+f"(c[29][3]), "+f"(c[30][0]), "+f"(c[30][1]), "+f"(c[30][2]), "+f"(c[30][3]), "+f"(c[31][0]), "+f"(c[31][1]), "+f"(c[31][2]), "+f"(c[31][3])
      : "l"(a), "l"(b), "r"(add)
      : "memory");
}
// clang-format on

__device__ __forceinline__ void wgmma(Sums* c, unsigned long long a, unsigned long long b, int add) {
  if constexpr (kColumns == 256) {
    wgmma_n256(c, a, b, add);
  } else {
    wgmma_n128(c, a, b, add);
  }
}

template <typename Pipeline>
__device__ __forceinline__ void multiply(const Problem& problem, int index, Pipeline& pipeline) {
  const int group = threadIdx.x / (4 * kLanes);
  const int row0 = group / kGroupsN * kRows;
  const int column0 = group % kGroupsN * kColumns;
  Sums sums[kRows / 64][kColumns / 8];  // the first product of each sets it
  bool add = false;
  pipeline.for_each_step(
      [&](const half* a, const half* b) {
        fence();
#pragma unroll
        for (int k = 0; k < kTileK; k += 16) {
#pragma unroll
          for (int m = 0; m < kRows / 64; ++m) {
            wgmma(sums[m], describe_a(a, row0 + m * 64, k), describe_b(b, k, column0), k > 0 || add);
          }
        }
        commit();
        add = true;
      },
      [] { wait<kLag>(); });
  wait<0>();
  pipeline.finish_tile();
  const Tile tile = find_tile(problem, index);
#pragma unroll
  for (int m = 0; m < kRows / 64; ++m) {
#pragma unroll
    for (int n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(sums[m][n][i])::"memory");  // not before the wait
    }
    store_fragments(tile.c, problem.M, problem.N, tile.row0 + row0 + m * 64 + threadIdx.x / kLanes % 4 * 16,
                    tile.column0 + column0, sums[m]);
  }
}

}  // namespace warpgroup

template <typename Pipeline>
__device__ __forceinline__ void multiply(const Problem& problem, int index, Pipeline& pipeline) {
  if constexpr (kPath == kScalar) {
    scalar::multiply(problem, index, pipeline);
  } else if constexpr (kPath == kMma) {
    warp::multiply(problem, index, pipeline);
  } else {
    warpgroup::multiply(problem, index, pipeline);
  }
}

// All warps start with as many registers. Those that only copy leave most of theirs to the others.
constexpr int kStartRegisters = 65536 / kBlocksPerSm / (kThreads + kCopiers * kLanes) / 8 * 8;
constexpr int kCopierRegisters = kWarps > 8 ? 32 : 40;
constexpr int kOthersRegisters =
    (kStartRegisters + (kStartRegisters - kCopierRegisters) * kCopiers / kWarps) / 8 * 8;
constexpr int kComputeRegisters = kOthersRegisters < 240 ? kOthersRegisters : 240;
constexpr bool kShiftRegisters = kCopiers > 0 && kStartRegisters < 232;

template <bool kByCpAsync>
__device__ __forceinline__ void multiply_all(const Problem& problem, int tiles, half* shared) {
  Pipeline<kByCpAsync> pipeline(problem, tiles, shared);
  if constexpr (kCopiers > 0) {
    if (threadIdx.x >= kThreads) {
      if constexpr (kShiftRegisters) asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCopierRegisters));
      pipeline.copy_all();
      return;
    }
    if constexpr (kShiftRegisters) asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kComputeRegisters));
  }
  if constexpr (kPersistent) {
#pragma unroll 1
    for (int index = blockIdx.x; index < tiles; index += gridDim.x) multiply(problem, index, pipeline);
  } else {
    multiply(problem, blockIdx.x, pipeline);
  }
  if constexpr (kAsync && kCopiers == 0) cp_async_wait<0>();
}

extern "C" __global__ void __launch_bounds__(kThreads + kCopiers * kLanes, kBlocksPerSm)
    gemm(const half* __restrict__ a, const half* __restrict__ b, half* __restrict__ c, int B, int M, int N, int K) {
  extern __shared__ __align__(1024) half shared[];
  const Problem problem = {a, b, c, M, N, K};
  const int tiles = B * ((M + kTileM - 1) / kTileM) * ((N + kTileN - 1) / kTileN);
  if constexpr (kAsync) {
    if (K % kVector == 0 && N % kVector == 0) {
      multiply_all<true>(problem, tiles, shared);
      return;
    }
  }
  multiply_all<false>(problem, tiles, shared);
}
