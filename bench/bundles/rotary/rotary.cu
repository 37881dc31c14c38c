// Rotary position embedding: element i of the first half of a head's row turns with element i of the second half. A thread has
// WIDTH elements of each half, of HEADS heads of one token. The sines are computed where they are needed, or once into a table.
#include <cuda_fp16.h>

constexpr int kUnroll = HEADS_UNROLL;

#if WIDTH == 8
using Word = uint4;
#elif WIDTH == 4
using Word = uint2;
#elif WIDTH == 2
using Word = unsigned;
#else
using Word = unsigned short;
#endif

union Piece {
  Word word;
  __half of[WIDTH];
  __device__ Piece() {}
};

__device__ Word Read(const __half* from) {
#if STREAM
  return __ldcs(reinterpret_cast<const Word*>(from));
#else
  return *reinterpret_cast<const Word*>(from);
#endif
}

__device__ void Write(__half* to, Word word) {
#if STREAM
  __stcs(reinterpret_cast<Word*>(to), word);
#else
  *reinterpret_cast<Word*>(to) = word;
#endif
}

__device__ float2 Turn(int position, float rate) {
  float2 turn;
  sincosf(float(position) * rate, &turn.y, &turn.x);
  return turn;
}

extern "C" __global__ void make_table(const int* positions, const float* rates, float2* table, int tokens, int half) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < tokens * half) table[i] = Turn(positions[i / half], rates[i % half]);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    rotate(const __half* in, const int* positions, const float* rates, const float2* table, __half* out, int tokens, int heads, int half) {
  const int columns = half / WIDTH, groups = (heads + HEADS - 1) / HEADS;
  const long long index = (long long)blockIdx.x * BLOCK + threadIdx.x;
  const int column = index % columns * WIDTH;
  const int group = index / columns % groups;
  const long long token = index / columns / groups;
  if (token >= tokens) return;

  float2 turns[WIDTH];
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) {
#if TABLE
    turns[i] = table[token * half + column + i];
#else
    turns[i] = Turn(positions[token], rates[column + i]);
#endif
  }
#pragma unroll kUnroll
  for (int h = 0; h < HEADS; ++h) {
    const int head = group * HEADS + h;
    if (head >= heads) break;
    const long long at = (token * heads + head) * 2 * half + column;
    Piece a, b;
    a.word = Read(in + at);
    b.word = Read(in + at + half);
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      const float x = __half2float(a.of[i]), y = __half2float(b.of[i]);
      a.of[i] = __float2half(x * turns[i].x - y * turns[i].y);
      b.of[i] = __float2half(y * turns[i].x + x * turns[i].y);
    }
    Write(out + at, a.word);
    Write(out + at + half, b.word);
  }
}
