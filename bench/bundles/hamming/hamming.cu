// For each query the nearest code of 256 bits by Hamming distance, the first where several are as near. A thread has EACH
// queries. Where SPLITS asks for it, blocks share the codes, and a second kernel takes the nearest of their results.
constexpr int kWords = 8, kUnroll = UNROLL;

struct Code {
  unsigned of[kWords];
};

__device__ Code Load(const unsigned* codes, int i) {
  Code read;
#if WIDE
  const uint4 low = reinterpret_cast<const uint4*>(codes)[2 * i], high = reinterpret_cast<const uint4*>(codes)[2 * i + 1];
  read.of[0] = low.x, read.of[1] = low.y, read.of[2] = low.z, read.of[3] = low.w;
  read.of[4] = high.x, read.of[5] = high.y, read.of[6] = high.z, read.of[7] = high.w;
#else
#pragma unroll
  for (int w = 0; w < kWords; ++w) read.of[w] = codes[kWords * i + w];
#endif
  return read;
}

#if ADDERS
// Three words in, a word of ones and a word of twos out: four counts of bits in place of eight.
__device__ void Add(unsigned a, unsigned b, unsigned c, unsigned* ones, unsigned* twos) {
  *ones = a ^ b ^ c;
  *twos = (a & b) | (c & (a | b));
}

__device__ int Distance(const Code& a, const Code& b) {
  unsigned x[kWords], ones, twos[4], fours[2], eights;
#pragma unroll
  for (int w = 0; w < kWords; ++w) x[w] = a.of[w] ^ b.of[w];
  Add(x[0], x[1], x[2], &ones, &twos[0]);
  Add(ones, x[3], x[4], &ones, &twos[1]);
  Add(ones, x[5], x[6], &ones, &twos[2]);
  Add(ones, x[7], 0, &ones, &twos[3]);
  Add(twos[0], twos[1], twos[2], &twos[0], &fours[0]);
  Add(twos[0], twos[3], 0, &twos[0], &fours[1]);
  Add(fours[0], fours[1], 0, &fours[0], &eights);
  return __popc(ones) + 2 * __popc(twos[0]) + 4 * __popc(fours[0]) + 8 * __popc(eights);
}
#else
__device__ int Distance(const Code& a, const Code& b) {
  int distance = 0;
#pragma unroll
  for (int w = 0; w < kWords; ++w) distance += __popc(a.of[w] ^ b.of[w]);
  return distance;
}
#endif

// The nearest code so far. A key has the distance in its upper bits and the index in its lower ones.
struct Nearest {
#if KEYS
  unsigned key = 0xffffffffu;
  __device__ void See(int distance, int index) { key = min(key, unsigned(distance) << 22 | unsigned(index)); }
  __device__ unsigned Key() const { return key; }
#else
  int distance = 1 << 9, index = (1 << 22) - 1;
  __device__ void See(int other, int at) {
    if (other < distance) distance = other, index = at;
  }
  __device__ unsigned Key() const { return unsigned(distance) << 22 | unsigned(index); }
#endif
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    nearest(const unsigned* queries, const unsigned* codes, unsigned* to, int query_count, int code_count) {
  const int first = blockIdx.x * BLOCK * EACH + threadIdx.x;
  Code mine[EACH];
  Nearest found[EACH];
#pragma unroll
  for (int e = 0; e < EACH; ++e) mine[e] = Load(queries, min(first + e * BLOCK, query_count - 1));

  const int share = (code_count + SPLITS - 1) / SPLITS;
  const int begin = min(code_count, int(blockIdx.y) * share), end = min(code_count, begin + share);
#if TILE
  __shared__ alignas(16) unsigned tile[TILE * kWords];
  for (int base = begin; base < end; base += TILE) {
    const int count = min(TILE, end - base);
    __syncthreads();
    for (int i = threadIdx.x; i < count * kWords; i += BLOCK) tile[i] = codes[base * kWords + i];
    __syncthreads();
#pragma unroll kUnroll
    for (int i = 0; i < count; ++i) {
      const Code code = Load(tile, i);
#pragma unroll
      for (int e = 0; e < EACH; ++e) found[e].See(Distance(mine[e], code), base + i);
    }
  }
#else
#pragma unroll kUnroll
  for (int i = begin; i < end; ++i) {
    const Code code = Load(codes, i);
#pragma unroll
    for (int e = 0; e < EACH; ++e) found[e].See(Distance(mine[e], code), i);
  }
#endif
#pragma unroll
  for (int e = 0; e < EACH; ++e) {
    const int i = first + e * BLOCK;
    if (i < query_count) to[(long long)blockIdx.y * query_count + i] = found[e].Key();
  }
}

extern "C" __global__ void nearest_of_parts(const unsigned* parts, unsigned* out, int query_count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= query_count) return;
  unsigned key = 0xffffffffu;
  for (int split = 0; split < SPLITS; ++split) key = min(key, parts[(long long)split * query_count + i]);
  out[i] = key;
}
