// Pawl's own kernels: they make inputs and poison from a key, check that bytes are still what a key made them,
// compare outputs, and put the GPU into a known state between calls. A key serves for one fill and is drawn after
// everything that ran before it, so that nothing a candidate reads tells what the next fill holds.

typedef unsigned int u32;
typedef unsigned long long u64;

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Mirrors Key in support.h.
struct Key {
  u32 words[8];
};

// Mirrors Segment in support.h.
struct Segment {
  u64 address;
  u64 bytes;
  double low, high;  // of the values
  u32 content;       // what to write: see Content
  u32 type;          // v1::DataType
  u32 stream;        // tells the segments of a call apart
  u32 call;          // tells the calls of a fill apart
};
enum Content : u32 {
  kNormal = 1,
  kUniform,
  kRandomBytes,
  kAllOnes,
  kWideNormal,
  kHeavyTails,
  kLarge,
  kEqual,
  kSorted,
  kZeros,
  kDenormal,
  kExtremes,
  kStriped
};
enum Type : u32 { kF16 = 1, kBf16 = 2, kF32 = 3, kF64 = 4, kI32 = 5 };

// 64 bytes of the ChaCha20 stream: block `counter` of the stream that key, stream and call name.
struct Block {
  u32 words[16];
};

__device__ __forceinline__ void QuarterRound(u32& a, u32& b, u32& c, u32& d) {
  a += b, d = __funnelshift_l(d ^ a, d ^ a, 16);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 12);
  a += b, d = __funnelshift_l(d ^ a, d ^ a, 8);
  c += d, b = __funnelshift_l(b ^ c, b ^ c, 7);
}

__device__ Block ChaCha20(const Key& key, u32 stream, u32 call, u64 counter) {
  const u32 in[16] = {0x61707865,   0x3320646e,         0x79622d32,   0x6b206574,   key.words[0], key.words[1],
                      key.words[2], key.words[3],       key.words[4], key.words[5], key.words[6], key.words[7],
                      u32(counter), u32(counter >> 32), stream,       call};
  Block block;
#pragma unroll
  for (int i = 0; i < 16; ++i) block.words[i] = in[i];
  u32* x = block.words;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    QuarterRound(x[0], x[4], x[8], x[12]);
    QuarterRound(x[1], x[5], x[9], x[13]);
    QuarterRound(x[2], x[6], x[10], x[14]);
    QuarterRound(x[3], x[7], x[11], x[15]);
    QuarterRound(x[0], x[5], x[10], x[15]);
    QuarterRound(x[1], x[6], x[11], x[12]);
    QuarterRound(x[2], x[7], x[8], x[13]);
    QuarterRound(x[3], x[4], x[9], x[14]);
  }
#pragma unroll
  for (int i = 0; i < 16; ++i) block.words[i] += in[i];
  return block;
}

// Sum of four 16-bit uniforms: mean 0, variance 1, no tails beyond 3.5. Integer until the last product, so that two
// processes get the same bits.
__device__ __forceinline__ float Normal(uint2 bits) {
  const int sum = int(bits.x & 0xffff) + int(bits.x >> 16) + int(bits.y & 0xffff) + int(bits.y >> 16) - 131070;
  return float(sum) * (1.0f / 37837.2f);
}

// In [0, 1).
__device__ __forceinline__ double Unit(u32 bits) { return double(bits) * (1.0 / 4294967296.0); }

// Element i of a segment of `count` elements, from 64 random bits; `first` are those of the segment's first element.
__device__ double Draw(const Segment& segment, uint2 bits, uint2 first, u64 i, u64 count) {
  const double low = segment.low, high = segment.high;
  const double middle = 0.5 * low + 0.5 * high, half = 0.5 * high - 0.5 * low;
  const bool upper = bits.y & 1;
  double value = 0;
  switch (segment.content) {
    case kNormal:
      value = Normal(bits);
      break;
    case kUniform:
      value = low + 2 * half * Unit(bits.x);
      break;
    case kWideNormal:
      value = middle + half * (1.0 / 3) * Normal(bits);
      break;
    case kHeavyTails:  // magnitudes of all orders down to a millionth of the range
      value = middle + (upper ? half : -half) * exp2(-20 * Unit(bits.x));
      break;
    case kLarge:
      value = middle + (upper ? half : -half) * (1 - 0.25 * Unit(bits.x));
      break;
    case kEqual:
      value = low + 2 * half * Unit(first.x);
      break;
    case kSorted:
      value = low + 2 * half * ((double(i) + Unit(bits.x)) / double(count));
      break;
    case kDenormal:
      return value;  // made of bits, by the caller
    case kExtremes:
      value = bits.x % 3 == 0 ? low : bits.x % 3 == 1 ? high : 0;
      break;
    case kStriped:
      value = (low + 2 * half * Unit(bits.x)) * ((i >> first.x % 8 & 1) == (first.y & 1) ? 1 : 1.0 / 64);
      break;
  }
  return fmin(fmax(value, low), high);
}

__device__ int DrawInteger(const Segment& segment, uint2 bits, uint2 first, u64 i, u64 count) {
  const long long low = (long long)segment.low, high = (long long)segment.high;
  const u64 span = u64(high - low) + 1;
  const u64 wide = u64(bits.x) << 32 | bits.y;
  switch (segment.content) {
    case kLarge:
      return int(high - (long long)__umul64hi(wide, span - span / 4 * 3));
    case kEqual:
      return int(low + (long long)__umul64hi(u64(first.x) << 32 | first.y, span));
    case kSorted:
      return int(low + (long long)(double(i) / double(count) * double(span)));
    case kZeros:
      return int(max(low, min(high, 0ll)));
    case kExtremes:
      return int(bits.x % 3 == 0 ? low : bits.x % 3 == 1 ? high : max(low, min(high, 0ll)));
    default:
      return int(low + (long long)__umul64hi(wide, span));
  }
}

// A value too small for the type's full precision, or 0, of a sign that the range has; the low end where it has none.
template <typename T>
__device__ T Denormal(const Segment& segment, uint2 bits);
template <>
__device__ __half Denormal(const Segment& segment, uint2 bits) {
  if (segment.low > 0 || segment.high < 0) return __float2half_rn(float(segment.low));
  const bool negative = segment.low < 0 && (segment.high <= 0 || (bits.y & 1));
  return __ushort_as_half((unsigned short)((bits.x & 0x3ff) | (negative ? 0x8000 : 0)));
}
template <>
__device__ __nv_bfloat16 Denormal(const Segment& segment, uint2 bits) {
  if (segment.low > 0 || segment.high < 0) return __float2bfloat16_rn(float(segment.low));
  const bool negative = segment.low < 0 && (segment.high <= 0 || (bits.y & 1));
  return __ushort_as_bfloat16((unsigned short)((bits.x & 0x7f) | (negative ? 0x8000 : 0)));
}
template <>
__device__ float Denormal(const Segment& segment, uint2 bits) {
  if (segment.low > 0 || segment.high < 0) return float(segment.low);
  const bool negative = segment.low < 0 && (segment.high <= 0 || (bits.y & 1));
  return __uint_as_float((bits.x & 0x7fffff) | (negative ? 0x80000000u : 0));
}
template <>
__device__ double Denormal(const Segment& segment, uint2 bits) {
  if (segment.low > 0 || segment.high < 0) return segment.low;
  const bool negative = segment.low < 0 && (segment.high <= 0 || (bits.y & 1));
  return __longlong_as_double((long long)(bits.x & 0xfffff) << 32 | bits.y | (negative ? 1ll << 63 : 0));
}

__device__ __forceinline__ u32 ElementBytes(u32 type) {
  return type == kF64 ? 8 : type == kF32 || type == kI32 ? 4 : 2;
}

// Bytes that one block of the stream makes: itself, or eight elements.
__device__ __forceinline__ u32 PieceBytes(const Segment& segment) {
  return segment.content == kRandomBytes || segment.content == kAllOnes ? 64 : 8 * ElementBytes(segment.type);
}

union Piece {
  uint4 words[4];
  unsigned char bytes[64];
  u32 u32s[16];
  __half f16[8];
  __nv_bfloat16 bf16[8];
  float f32[8];
  double f64[8];
  int i32[8];
  __device__ Piece() {}
};

// The bytes at piece p of a segment; `first` as in Draw.
__device__ void MakePiece(const Segment& segment, const Key& key, uint2 first, u64 p, Piece& piece) {
  if (segment.content == kAllOnes) {
#pragma unroll
    for (int i = 0; i < 16; ++i) piece.u32s[i] = ~0u;
    return;
  }
  const Block block = ChaCha20(key, segment.stream, segment.call, p);
  if (segment.content == kRandomBytes) {
#pragma unroll
    for (int i = 0; i < 16; ++i) piece.u32s[i] = block.words[i];
    return;
  }
  const u64 count = segment.bytes / ElementBytes(segment.type);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const uint2 bits = make_uint2(block.words[2 * i], block.words[2 * i + 1]);
    if (segment.type == kI32) {
      piece.i32[i] = DrawInteger(segment, bits, first, 8 * p + i, count);
      continue;
    }
    const bool denormal = segment.content == kDenormal;
    const double value = segment.content == kZeros ? fmin(fmax(0.0, segment.low), segment.high)
                                                   : Draw(segment, bits, first, 8 * p + i, count);
    if (segment.type == kF16) {
      piece.f16[i] = denormal ? Denormal<__half>(segment, bits) : __float2half_rn(float(value));
    } else if (segment.type == kBf16) {
      piece.bf16[i] = denormal ? Denormal<__nv_bfloat16>(segment, bits) : __float2bfloat16_rn(float(value));
    } else if (segment.type == kF32) {
      piece.f32[i] = denormal ? Denormal<float>(segment, bits) : float(value);
    } else {
      piece.f64[i] = denormal ? Denormal<double>(segment, bits) : value;
    }
  }
}

__device__ __forceinline__ uint2 FirstBits(const Segment& segment, const Key& key) {
  if (segment.content != kEqual && segment.content != kStriped) return make_uint2(0, 0);
  const Block block = ChaCha20(key, segment.stream, segment.call, 0);
  return make_uint2(block.words[0], block.words[1]);
}

// One row of blocks (blockIdx.y) a segment. Segments need not start or end on 16 bytes. `call` is added to those of
// the segments.
extern "C" __global__ void pawl_fill(const Segment* segments, Key key, u32 call) {
  Segment segment = segments[blockIdx.y];
  segment.call += call;
  const uint2 first = FirstBits(segment, key);
  unsigned char* base = reinterpret_cast<unsigned char*>(segment.address);
  const bool aligned = segment.address % 16 == 0;
  const u32 width = PieceBytes(segment);
  const u64 pieces = (segment.bytes + width - 1) / width;
  for (u64 p = blockIdx.x * u64(blockDim.x) + threadIdx.x; p < pieces; p += u64(gridDim.x) * blockDim.x) {
    Piece piece;
    MakePiece(segment, key, first, p, piece);
    const u64 at = p * width;
    if (aligned && at + width <= segment.bytes) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (16 * i < width) reinterpret_cast<uint4*>(base + at)[i] = piece.words[i];
      }
    } else {
      for (u32 i = 0; i < width && at + i < segment.bytes; ++i) base[at + i] = piece.bytes[i];
    }
  }
}

// first_changed[segment]: offset of the first byte that is not what pawl_fill wrote; all ones where there is none.
extern "C" __global__ void pawl_verify(const Segment* segments, Key key, u32 call, u64* first_changed) {
  Segment segment = segments[blockIdx.y];
  segment.call += call;
  const uint2 first = FirstBits(segment, key);
  const unsigned char* base = reinterpret_cast<const unsigned char*>(segment.address);
  const u32 width = PieceBytes(segment);
  const u64 pieces = (segment.bytes + width - 1) / width;
  for (u64 p = blockIdx.x * u64(blockDim.x) + threadIdx.x; p < pieces; p += u64(gridDim.x) * blockDim.x) {
    Piece piece;
    MakePiece(segment, key, first, p, piece);
    const u64 at = p * width;
    for (u32 i = 0; i < width && at + i < segment.bytes; ++i) {
      if (base[at + i] != piece.bytes[i]) {
        atomicMin(&first_changed[blockIdx.y], at + i);
        break;
      }
    }
  }
}

__device__ __forceinline__ u64 Mix64(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Adds a position-dependent digest of the bytes to *digest: equal digests, equal outputs.
extern "C" __global__ void pawl_digest(const unsigned char* data, u64 bytes, u64* digest) {
  const u32* words = reinterpret_cast<const u32*>(data);
  u64 sum = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < (bytes + 3) / 4; i += u64(gridDim.x) * blockDim.x) {
    u32 word = 0;
    if (i * 4 + 4 <= bytes) {
      word = words[i];
    } else {
      for (u64 b = i * 4; b < bytes; ++b) word = word << 8 | data[b];
    }
    sum += Mix64(u64(word) << 32 ^ i);
  }
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(digest, sum);
}

// Mirrors Difference in support.h.
struct Difference {
  double sum_absolute;
  double sum_squares;
  double sum_squares_reference;
  u64 max_absolute;  // bits of a non-negative double: they order like the number
  u64 wrong;
  u64 non_finite;
  u64 first_wrong;
};

template <typename T>
__device__ double ToDouble(T x) {
  return double(x);
}
template <>
__device__ double ToDouble(__half x) {
  return double(__half2float(x));
}
template <>
__device__ double ToDouble(__nv_bfloat16 x) {
  return double(__bfloat162float(x));
}

template <typename T>
__device__ void CompareAs(const T* out, const T* reference, u64 count, double absolute, Difference* total) {
  double sum_absolute = 0, sum_squares = 0, sum_squares_reference = 0, max_absolute = 0;
  u64 wrong = 0, non_finite = 0, first_wrong = ~0ull;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const double a = ToDouble(out[i]), b = ToDouble(reference[i]);
    const bool both_finite = isfinite(a) && isfinite(b);
    if (!both_finite) {
      const bool same = (isnan(a) && isnan(b)) || a == b;
      if (!same) {
        ++non_finite;
        ++wrong;
        if (i < first_wrong) first_wrong = i;
      }
      continue;
    }
    const double difference = fabs(a - b);
    sum_absolute += difference;
    sum_squares += difference * difference;
    sum_squares_reference += b * b;
    max_absolute = fmax(max_absolute, difference);
    if (difference > absolute) {
      ++wrong;
      if (i < first_wrong) first_wrong = i;
    }
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    sum_absolute += __shfl_xor_sync(~0u, sum_absolute, lane);
    sum_squares += __shfl_xor_sync(~0u, sum_squares, lane);
    sum_squares_reference += __shfl_xor_sync(~0u, sum_squares_reference, lane);
    max_absolute = fmax(max_absolute, __shfl_xor_sync(~0u, max_absolute, lane));
    wrong += __shfl_xor_sync(~0u, wrong, lane);
    non_finite += __shfl_xor_sync(~0u, non_finite, lane);
    first_wrong = min(first_wrong, __shfl_xor_sync(~0u, first_wrong, lane));
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&total->sum_absolute, sum_absolute);
  atomicAdd(&total->sum_squares, sum_squares);
  atomicAdd(&total->sum_squares_reference, sum_squares_reference);
  atomicMax(&total->max_absolute, u64(__double_as_longlong(max_absolute)));
  if (wrong != 0) atomicAdd(&total->wrong, wrong);
  if (non_finite != 0) atomicAdd(&total->non_finite, non_finite);
  atomicMin(&total->first_wrong, first_wrong);
}

extern "C" __global__ void pawl_compare(const void* out, const void* reference, u32 type, u64 count, double absolute,
                                        Difference* total) {
  switch (type) {
    case kF16:
      return CompareAs((const __half*)out, (const __half*)reference, count, absolute, total);
    case kBf16:
      return CompareAs((const __nv_bfloat16*)out, (const __nv_bfloat16*)reference, count, absolute, total);
    case kF32:
      return CompareAs((const float*)out, (const float*)reference, count, absolute, total);
    case kF64:
      return CompareAs((const double*)out, (const double*)reference, count, absolute, total);
    case kI32:
      return CompareAs((const int*)out, (const int*)reference, count, absolute, total);
  }
}

// A permutation of the elements that moves every one when there is more than one: for the tolerance's self-test.
extern "C" __global__ void pawl_rotate(const unsigned char* from, unsigned char* to, u32 width, u64 count) {
  const u64 shift = count / 2;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const u64 source = (i + shift) % count;
    for (u32 b = 0; b < width; ++b) to[i * width + b] = from[source * width + b];
  }
}

// Leaves data-like garbage in every SM's shared memory and in the threads' local memory, so that nobody profits from
// zeros there, or from what it or another left.
extern "C" __global__ void pawl_dirty_shared(u32 words, Key key) {
  extern __shared__ volatile u32 shared[];
  volatile u32 local[256];
  for (u32 i = 0; i < 256; ++i) local[(i + key.words[0]) % 256] = key.words[i % 8] ^ i * 0x9E3779B1u;
  for (u32 b = threadIdx.x; b * 8 < words; b += blockDim.x) {
    const Block block = ChaCha20(key, blockIdx.x, 0, b);
    for (u32 i = 0; i < 8 && b * 8 + i < words; ++i) {
      shared[b * 8 + i] = __float_as_uint(Normal(make_uint2(block.words[2 * i], block.words[2 * i + 1])));
    }
  }
}

// Keeps the stream busy while the host queues what follows, so that no measured call waits for the host.
extern "C" __global__ void pawl_hold(u32 nanoseconds) {
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// Arithmetic on registers alone, so that its time follows the SM clock and nothing else: what times of different
// processes are held against.
extern "C" __global__ void pawl_anchor(u32 rounds, float* sink) {
  float a = threadIdx.x, b = 1, c = 2, d = 3;
  for (u32 i = 0; i < rounds; ++i) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      a = fmaf(a, 0.999f, 0.001f);
      b = fmaf(b, 0.998f, 0.002f);
      c = fmaf(c, 0.997f, 0.003f);
      d = fmaf(d, 0.996f, 0.004f);
    }
  }
  if (a + b + c + d == 0.12345f) *sink = a;  // never; the compiler can't know
}

// Mirrors Norm in support.cc: of the finite values, and how many are not.
struct Norm {
  double sum_squares;
  u64 non_finite;
};

template <typename T>
__device__ void NormAs(const T* values, u64 count, Norm* total) {
  double sum_squares = 0;
  u64 non_finite = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const double value = ToDouble(values[i]);
    if (isfinite(value)) {
      sum_squares += value * value;
    } else {
      ++non_finite;
    }
  }
  for (int lane = 16; lane > 0; lane /= 2) {
    sum_squares += __shfl_xor_sync(~0u, sum_squares, lane);
    non_finite += __shfl_xor_sync(~0u, non_finite, lane);
  }
  if (threadIdx.x % 32 != 0) return;
  atomicAdd(&total->sum_squares, sum_squares);
  if (non_finite != 0) atomicAdd(&total->non_finite, non_finite);
}

extern "C" __global__ void pawl_norm(const void* values, u32 type, u64 count, Norm* total) {
  switch (type) {
    case kF16:
      return NormAs((const __half*)values, count, total);
    case kBf16:
      return NormAs((const __nv_bfloat16*)values, count, total);
    case kF32:
      return NormAs((const float*)values, count, total);
    case kF64:
      return NormAs((const double*)values, count, total);
    case kI32:
      return NormAs((const int*)values, count, total);
  }
}

// How many elements differ from the reference by more than this share of themselves.
template <typename T>
__device__ void DifferAs(const T* out, const T* reference, u64 count, double share, u64* total) {
  u64 differing = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const double a = ToDouble(out[i]), b = ToDouble(reference[i]);
    const bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= share * fabs(b);
    differing += !same;
  }
  for (int lane = 16; lane > 0; lane /= 2) differing += __shfl_xor_sync(~0u, differing, lane);
  if (threadIdx.x % 32 == 0 && differing != 0) atomicAdd(total, differing);
}

extern "C" __global__ void pawl_differ(const void* out, const void* reference, u32 type, u64 count, double share,
                                       u64* total) {
  switch (type) {
    case kF16:
      return DifferAs((const __half*)out, (const __half*)reference, count, share, total);
    case kBf16:
      return DifferAs((const __nv_bfloat16*)out, (const __nv_bfloat16*)reference, count, share, total);
    case kF32:
      return DifferAs((const float*)out, (const float*)reference, count, share, total);
    case kF64:
      return DifferAs((const double*)out, (const double*)reference, count, share, total);
    case kI32:
      return DifferAs((const int*)out, (const int*)reference, count, share, total);
  }
}

// Mirrors Corruption in support.h.
enum Corruption : u32 { kDropTail = 1, kZeroFirstRow, kZeroLastRow, kZeroColumn, kSwapRows, kScale };

template <typename T>
__device__ T FromDouble(double x) {
  return T(x);
}
template <>
__device__ __half FromDouble(double x) {
  return __float2half_rn(float(x));
}
template <>
__device__ __nv_bfloat16 FromDouble(double x) {
  return __float2bfloat16_rn(float(x));
}

// A copy with one thing wrong, for the tolerance's self-test: `tail` elements at the end are 0; the first row, the
// last row or the last column is; the first row and the last change places; everything is multiplied.
template <typename T>
__device__ void CorruptAs(const T* from, T* to, u64 count, u64 columns, u32 corruption, u64 tail, double factor) {
  const u64 rows = count / columns;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const u64 row = i / columns, column = i % columns;
    const bool ends = row == 0 || row == rows - 1;
    const u64 source = corruption == kSwapRows && ends ? (rows - 1 - row) * columns + column : i;
    const bool zero = (corruption == kDropTail && i >= count - tail) ||
                      (corruption == kZeroLastRow && row == rows - 1) || (corruption == kZeroFirstRow && row == 0) ||
                      (corruption == kZeroColumn && column == columns - 1);
    T value = from[source];
    if (corruption == kScale) value = FromDouble<T>(ToDouble(value) * factor);
    to[i] = zero ? FromDouble<T>(0) : value;
  }
}

extern "C" __global__ void pawl_corrupt(const void* from, void* to, u32 type, u64 count, u64 columns, u32 corruption,
                                        u64 tail, double factor) {
  switch (type) {
    case kF16:
      return CorruptAs((const __half*)from, (__half*)to, count, columns, corruption, tail, factor);
    case kBf16:
      return CorruptAs((const __nv_bfloat16*)from, (__nv_bfloat16*)to, count, columns, corruption, tail, factor);
    case kF32:
      return CorruptAs((const float*)from, (float*)to, count, columns, corruption, tail, factor);
    case kF64:
      return CorruptAs((const double*)from, (double*)to, count, columns, corruption, tail, factor);
    case kI32:
      return CorruptAs((const int*)from, (int*)to, count, columns, corruption, tail, factor);
  }
}
