// Transposes a row-major [rows, cols] matrix tile by tile. A tile passes through shared memory, so that the reads of
// the input and the writes of the output both run along rows.

constexpr int kTile = TILE;             // edge of the square tile
constexpr int kPad = PAD;               // floats added to each row of the tile, to spread its columns over the banks
constexpr int kVector = VECTOR;         // floats a thread moves at once in global memory
constexpr int kBlockRows = BLOCK_ROWS;  // rows of the tile that the block moves at once
constexpr int kStride = kTile + kPad;
constexpr int kRowsPerThread = kTile / kBlockRows;
constexpr int kThreads = kTile / kVector * kBlockRows;

struct alignas(kVector * sizeof(float)) Pack {
  float at[kVector];
};

// Reads up to kVector floats, of which only the first `inside` belong to the matrix.
__device__ Pack LoadChecked(const float* from, int inside) {
  Pack pack;
#pragma unroll
  for (int k = 0; k < kVector; ++k) pack.at[k] = k < inside ? from[k] : 0.0f;
  return pack;
}

__device__ void StoreChecked(float* to, const Pack& pack, int inside) {
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    if (k < inside) to[k] = pack.at[k];
  }
}

// The thread's part of the tile at (row0, col0) goes to registers first: all its loads are in flight together.
__device__ void ReadTile(const float* in, int rows, int cols, int row0, int col0, Pack (&staged)[kRowsPerThread]) {
  const int row = row0 + threadIdx.y;
  const int col = col0 + threadIdx.x * kVector;
  const float* from = in + static_cast<long long>(row) * cols + col;
  const long long step = static_cast<long long>(kBlockRows) * cols;
  // Rows start on a vector boundary only where their length is a multiple of the vector.
  const bool whole = row0 + kTile <= rows && col0 + kTile <= cols && cols % kVector == 0;
  if (whole) {
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) staged[i] = *reinterpret_cast<const Pack*>(from + i * step);
  } else {
#pragma unroll
    for (int i = 0; i < kRowsPerThread; ++i) {
      staged[i] = LoadChecked(from + i * step, row + i * kBlockRows < rows ? cols - col : 0);
    }
  }
}

// Writes the columns of the tile as rows of the output, whose shape is [cols, rows].
__device__ void WriteTile(const float* tile, float* out, int rows, int cols, int row0, int col0) {
  const int col = col0 + threadIdx.y;
  const int row = row0 + threadIdx.x * kVector;
  float* to = out + static_cast<long long>(col) * rows + row;
  const long long step = static_cast<long long>(kBlockRows) * rows;
  const bool whole = row0 + kTile <= rows && col0 + kTile <= cols && rows % kVector == 0;
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i) {
    Pack pack;
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      pack.at[k] = tile[(threadIdx.x * kVector + k) * kStride + threadIdx.y + i * kBlockRows];
    }
    if (whole) {
      *reinterpret_cast<Pack*>(to + i * step) = pack;
    } else {
      StoreChecked(to + i * step, pack, col + i * kBlockRows < cols ? rows - row : 0);
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads)
    transpose(const float* __restrict__ in, float* __restrict__ out, int rows, int cols) {
  extern __shared__ float tile[];  // kTile rows of kStride floats
  const int row0 = blockIdx.y * kTile;
  const int col0 = blockIdx.x * kTile;

  Pack staged[kRowsPerThread];
  ReadTile(in, rows, cols, row0, col0, staged);
#pragma unroll
  for (int i = 0; i < kRowsPerThread; ++i) {
    // One float at a time: a padded row of the tile does not start on a vector boundary.
#pragma unroll
    for (int k = 0; k < kVector; ++k) {
      tile[(threadIdx.y + i * kBlockRows) * kStride + threadIdx.x * kVector + k] = staged[i].at[k];
    }
  }
  __syncthreads();
  WriteTile(tile, out, rows, cols, row0, col0);
}
