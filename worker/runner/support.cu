// Pawl's own kernels: they make inputs and poison from a key, check that bytes are still what a key made them,
// compare outputs, and put the GPU into a known state between calls. A key serves for one fill and is drawn after
// everything that ran before it, so that nothing a candidate reads tells what the next fill holds.

// fills.h stands in front of this text.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

using namespace pawl;

// Elements of every type as bits: the low ones of a u64.

__device__ __forceinline__ u32 BitsOf(u32 type) {
  switch (type) {
    case kI4:
    case kU4:
      return 4;
    case kF8E4M3:
    case kF8E5M2:
    case kI8:
    case kU8:
    case kBool:
      return 8;
    case kF16:
    case kBf16:
    case kI16:
    case kU16:
      return 16;
    case kF64:
    case kI64:
    case kU64:
      return 64;
    default:
      return 32;
  }
}

__device__ __forceinline__ bool IsFloat(u32 type) {
  return type == kF16 || type == kBf16 || type == kF32 || type == kF64 || type == kF8E4M3 || type == kF8E5M2;
}

__device__ __forceinline__ bool IsSigned(u32 type) {
  return type == kI4 || type == kI8 || type == kI16 || type == kI32 || type == kI64;
}

// Of the bits behind the exponent.
__device__ __forceinline__ u64 MantissaMask(u32 type) {
  switch (type) {
    case kF16:
      return 0x3ff;
    case kBf16:
      return 0x7f;
    case kF32:
      return 0x7fffff;
    case kF8E4M3:
      return 0x7;
    case kF8E5M2:
      return 0x3;
    default:
      return 0xfffffffffffffull;
  }
}

__device__ __forceinline__ u64 LoadBits(const void* data, u32 type, u64 i) {
  switch (BitsOf(type)) {
    case 4:
      return static_cast<const unsigned char*>(data)[i / 2] >> 4 * (i % 2) & 15;
    case 8:
      return static_cast<const unsigned char*>(data)[i];
    case 16:
      return static_cast<const unsigned short*>(data)[i];
    case 32:
      return static_cast<const u32*>(data)[i];
    default:
      return static_cast<const u64*>(data)[i];
  }
}

// Elements that are stored at once: one, or the two that share a byte.
__device__ __forceinline__ u64 UnitsOf(u32 type, u64 count) { return BitsOf(type) == 4 ? (count + 1) / 2 : count; }

// make(i) gives the bits of element i.
template <typename Make>
__device__ void StoreUnit(void* to, u32 type, u64 unit, u64 count, Make make) {
  switch (BitsOf(type)) {
    case 4: {
      const u64 low = make(2 * unit), high = 2 * unit + 1 < count ? make(2 * unit + 1) : 0;
      static_cast<unsigned char*>(to)[unit] = (low & 15) | (high & 15) << 4;
      return;
    }
    case 8:
      static_cast<unsigned char*>(to)[unit] = make(unit);
      return;
    case 16:
      static_cast<unsigned short*>(to)[unit] = make(unit);
      return;
    case 32:
      static_cast<u32*>(to)[unit] = make(unit);
      return;
    default:
      static_cast<u64*>(to)[unit] = make(unit);
  }
}

// Of the bits of a whole number.
__device__ __forceinline__ long long Signed(u32 type, u64 bits) {
  const int unused = 64 - int(BitsOf(type));
  return IsSigned(type) ? (long long)(bits << unused) >> unused : (long long)bits;
}

__device__ double ToDouble(u32 type, u64 bits) {
  switch (type) {
    case kF16:
      return double(__half2float(__ushort_as_half((unsigned short)bits)));
    case kBf16:
      return double(__bfloat162float(__ushort_as_bfloat16((unsigned short)bits)));
    case kF32:
      return double(__uint_as_float(u32(bits)));
    case kF64:
      return __longlong_as_double((long long)bits);
    case kF8E4M3:
      return double(__half2float(__half(__nv_cvt_fp8_to_halfraw((unsigned char)bits, __NV_E4M3))));
    case kF8E5M2:
      return double(__half2float(__half(__nv_cvt_fp8_to_halfraw((unsigned char)bits, __NV_E5M2))));
    default:
      return IsSigned(type) ? double(Signed(type, bits)) : double(bits);
  }
}

__device__ u64 FromDouble(u32 type, double x) {
  switch (type) {
    case kF16:
      return __half_as_ushort(__float2half_rn(float(x)));
    case kBf16:
      return __bfloat16_as_ushort(__float2bfloat16_rn(float(x)));
    case kF32:
      return __float_as_uint(float(x));
    case kF64:
      return u64(__double_as_longlong(x));
    case kF8E4M3:
      return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E4M3);
    case kF8E5M2:
      return __nv_cvt_double_to_fp8(x, __NV_SATFINITE, __NV_E5M2);
    default:
      return IsSigned(type) ? u64((long long)x) : u64(x);
  }
}

// Element i of a segment of floats, from 64 random bits.
__device__ double Draw(const Segment& segment, const Block& seed, Bits bits, u64 i) {
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
      // Or all as in most inputs, but for one in 8 to one in 65536 at the ends of the range, one at least: what looks
      // at some elements does not know the others.
      if (seed.words[3] & 1) {
        const bool rare = bits.x < ~0u >> (3 + seed.words[2] % 14) ||
                          i == Scaled(Wide(seed.words[0], seed.words[1]), segment.elements - 1);
        const double usual = segment.usual == kNormal
                                 ? Normal(bits)
                                 : segment.usual_low + (segment.usual_high - segment.usual_low) * Unit(bits.y);
        value = rare ? middle + (upper ? half : -half) * (1 - 0.25 * Unit(bits.y))
                     : fmin(fmax(usual, segment.usual_low), segment.usual_high);
      }
      break;
    case kLarge:
      value = middle + (upper ? half : -half) * (1 - 0.25 * Unit(bits.x));
      break;
    case kEqual:
      value = low + 2 * half * Unit(seed.words[0]);
      break;
    case kSorted:
      value = low + 2 * half * ((double(i) + Unit(bits.x)) / double(segment.elements));
      break;
    case kExtremes:
      value = bits.x % 3 == 0 ? low : bits.x % 3 == 1 ? high : 0;
      break;
    case kStriped: {  // of widths up to 128 elements, another in every part of the tensor
      const u32 part = (u32(i >> 12) * 2654435761u) ^ seed.words[0];
      value = (low + 2 * half * Unit(bits.x)) *
              ((i >> (part >> 16) % 8 & 1) == (seed.words[1] & 1) ? 1 : 1.0 / 64);
      break;
    }
  }
  return fmin(fmax(value, low), high);
}

// A value too small for the type's full precision, or 0, of a sign that the range has; the low end where it has none.
__device__ u64 Denormal(const Segment& segment, Bits bits) {
  if (segment.low > 0 || segment.high < 0) return FromDouble(segment.type, segment.low);
  const bool negative = segment.low < 0 && (segment.high <= 0 || (bits.y & 1));
  return (Wide(bits.x, bits.y) >> 1 & MantissaMask(segment.type)) | u64(negative) << (BitsOf(segment.type) - 1);
}

// What a block of threads fills, in shared memory.
struct Work {
  Segment segment;
  Key key;
  Block seed;
  // Of normal and uniform floats of 16 or 32 bits, which are nearly all that is filled, in their own precision.
  bool simple;
  float low, high;
  // Of uniform ones: where they begin, which way they go from there and how far, so that small ones have all digits.
  float origin, span;
  bool both_ways;
  Lanes lanes;  // of garbage
};

// The bits of element i.
__device__ u64 MakeElement(const Work& work, Bits bits, u64 i) {
  const Segment& segment = work.segment;
  const bool is_float = IsFloat(segment.type);
  u64 whole = 0;
  switch (segment.content) {
    case kIota:
      whole = i;
      break;
    case kPermutation:
      whole = Permuted(work.seed, i, segment.elements);
      break;
    case kCsrOffsets:
      whole = CsrOffset(segment, work.key, i);
      break;
    case kDenormal:
      if (is_float && !segment.whole) return Denormal(segment, bits);
    default:
      if (is_float && !segment.whole) return FromDouble(segment.type, Draw(segment, work.seed, bits, i));
      whole = DrawWhole(segment, work.seed, bits.x, bits.y, i);
  }
  return is_float ? FromDouble(segment.type, double((long long)whole)) : whole;
}

__device__ __forceinline__ bool IsMadeOfBytes(const Segment& segment) {
  return segment.content == kRandomBytes || segment.content == kAllOnes || segment.content == kCopy ||
         segment.content == kGarbage;
}

// Elements, and bytes, that one block of the stream makes; of what is made of bytes, itself.
__device__ __forceinline__ u32 PieceElements(u32 type) { return 512 / DrawnBits(type, BitsOf(type)); }
__device__ __forceinline__ u32 PieceBytes(const Segment& segment) {
  return IsMadeOfBytes(segment) ? 64 : PieceElements(segment.type) * BitsOf(segment.type) / 8;
}

union Piece {
  uint4 words[4];
  unsigned char bytes[64];
  unsigned short u16s[32];
  u32 u32s[16];
  u64 u64s[8];
  __device__ Piece() {}
};

__device__ void CopyPiece(const Work& work, u64 at, Piece& piece) {
  const Segment& segment = work.segment;
  const unsigned char* source = reinterpret_cast<const unsigned char*>(segment.source);
  if (segment.row_bytes == 0 && at + 64 <= segment.bytes && segment.source % 16 == 0) {
#pragma unroll
    for (int i = 0; i < 4; ++i) piece.words[i] = reinterpret_cast<const uint4*>(source + at)[i];
    return;
  }
  u64 row = ~0ull, from = 0;
#pragma unroll 1
  for (u32 i = 0; i < 64 && at + i < segment.bytes; ++i) {
    if (segment.row_bytes == 0) {
      piece.bytes[i] = source[at + i];
      continue;
    }
    if ((at + i) / segment.row_bytes != row) {
      row = (at + i) / segment.row_bytes;
      from = Permuted(work.seed, row, segment.bytes / segment.row_bytes);
    }
    piece.bytes[i] = source[from * segment.row_bytes + (at + i) % segment.row_bytes];
  }
}

// One copy of it: the code is large, and compiled on every start of a worker.
__device__ __noinline__ void MakeElements(const Work& work, const Block& block, u64 p, Piece& piece) {
  const Segment& segment = work.segment;
  const u32 width = BitsOf(segment.type), count = PieceElements(segment.type);
  for (u32 i = 0; i < count; ++i) {
    const u64 element = u64(count) * p + i;
    Bits bits;
    if (count == 32) {
      bits = Widened16(block.words[i / 2] >> 16 * (i % 2) & 0xffff);
    } else if (count == 16) {
      bits = Widened32(block.words[i]);
    } else {
      bits = {block.words[2 * i], block.words[2 * i + 1]};
    }
    const u64 made = element < segment.elements ? MakeElement(work, bits, element) : 0;
    if (width == 4) {
      piece.bytes[i / 2] = i % 2 == 0 ? made & 15 : piece.bytes[i / 2] | (made & 15) << 4;
    } else if (width == 8) {
      piece.bytes[i] = made;
    } else if (width == 16) {
      piece.u16s[i] = made;
    } else if (width == 32) {
      piece.u32s[i] = made;
    } else {
      piece.u64s[i] = made;
    }
  }
}

__device__ __forceinline__ float SimpleValue(const Work& work, Bits bits) {
  const float way = work.both_ways ? float(int(bits.x)) * (1.0f / 2147483648)
                                   : fminf(float(bits.x) * (1.0f / 4294967296), 1 - 1.0f / 16777216);
  const float value = work.segment.content == kNormal ? Normal(bits) : fmaf(work.span, way, work.origin);
  return fminf(fmaxf(value, work.low), work.high);
}

__device__ __forceinline__ void MakeSimpleElements(const Work& work, const Block& block, Piece& piece) {
  if (work.segment.type == kF32) {
#pragma unroll
    for (int i = 0; i < 16; ++i) piece.u32s[i] = __float_as_uint(SimpleValue(work, Widened32(block.words[i])));
    return;
  }
  const bool half = work.segment.type == kF16;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const float low = SimpleValue(work, Widened16(block.words[i] & 0xffff));
    const float high = SimpleValue(work, Widened16(block.words[i] >> 16));
    const u32 low_bits = half ? u32(__half_as_ushort(__float2half_rn(low)))
                              : u32(__bfloat16_as_ushort(__float2bfloat16_rn(low)));
    const u32 high_bits = half ? u32(__half_as_ushort(__float2half_rn(high)))
                               : u32(__bfloat16_as_ushort(__float2bfloat16_rn(high)));
    piece.u32s[i] = low_bits | high_bits << 16;
  }
}

// The bytes at piece p of a segment.
__device__ void MakePiece(const Work& work, u64 p, Piece& piece) {
  const Segment& segment = work.segment;
  if (segment.content == kAllOnes) {
#pragma unroll
    for (int i = 0; i < 16; ++i) piece.u32s[i] = ~0u;
    return;
  }
  // Pieces that are indexed by what is not known here are others, so that registers hold the one that is returned.
  if (segment.content == kCopy) {
    Piece copied;
    CopyPiece(work, 64 * p, copied);
    piece = copied;
    return;
  }
  const Block block = ChaCha20(work.key, segment.stream, segment.call, p);
  if (segment.content == kRandomBytes) {
    const u32 mask = segment.type == kBool ? 0x01010101u : ~0u;
#pragma unroll
    for (int i = 0; i < 16; ++i) piece.u32s[i] = block.words[i] & mask;
  } else if (segment.content == kGarbage) {
#pragma unroll
    for (int i = 0; i < 16; i += 2) {
      const u64 choice = Wide(block.words[(i + 7) % 16], block.words[(i + 10) % 16]);
      const u64 made = Garbage(work.lanes, Wide(block.words[i + 1], block.words[i]), choice);
      piece.u32s[i] = u32(made);
      piece.u32s[i + 1] = u32(made >> 32);
    }
  } else if (work.simple) {
    MakeSimpleElements(work, block, piece);
  } else {
    const Block drawn = block;
    Piece made;
    MakeElements(work, drawn, p, made);
    piece = made;
  }
}

__device__ void SetSimple(Work& work) {
  const Segment& segment = work.segment;
  work.low = float(segment.low);
  work.high = float(segment.high);
  work.both_ways = segment.low < 0 && segment.high > 0;
  const double middle = 0.5 * segment.low + 0.5 * segment.high, half = 0.5 * segment.high - 0.5 * segment.low;
  work.origin = work.both_ways ? float(middle) : segment.low >= 0 ? work.low : work.high;
  work.span = work.both_ways ? float(half) : segment.low >= 0 ? float(2 * half) : float(-2 * half);
  const bool type = segment.type == kF16 || segment.type == kBf16 || segment.type == kF32;
  const bool content = segment.content == kNormal || (segment.content == kUniform && isfinite(work.span));
  work.simple = type && content && !segment.whole && work.low >= segment.low && work.high <= segment.high;
}

__device__ Lanes LanesOfType(u32 type) { return LanesOf(BitsOf(type), IsFloat(type) ? MantissaMask(type) : 0); }

// The segment of this row of blocks. `call` is added to its own.
__device__ __forceinline__ const Work& WorkOf(const Segment* segments, const Key& key, u32 call) {
  __shared__ Work work;
  if (threadIdx.x == 0) {
    work.segment = segments[blockIdx.y];
    if (!work.segment.shared) work.segment.call += call;
    work.key = key;
    if (work.segment.content == kPoison) work.segment.content = PoisonOf(work.segment, key);
    if (work.segment.content == kGarbage) work.lanes = LanesOfType(work.segment.type);
    SetSimple(work);
    if (!work.simple) work.seed = SeedOf(work.segment, key);
  }
  __syncthreads();
  return work;
}

// One row of blocks (blockIdx.y) a segment. Segments need not start or end on 16 bytes. `call` is added to those of
// the segments. With first_changed nothing is written: first_changed[segment] becomes the offset of the first byte that
// is not what would be, if it is lower. One kernel: most of it makes the bytes, and it is compiled on every start of a
// worker.
extern "C" __global__ void pawl_fill(const Segment* segments, Key key, u32 call, u64* first_changed) {
  const Work& work = WorkOf(segments, key, call);
  const Segment& segment = work.segment;
  unsigned char* base = reinterpret_cast<unsigned char*>(segment.address);
  const bool aligned = segment.address % 16 == 0;
  const u32 width = PieceBytes(segment);
  const u64 pieces = (segment.bytes + width - 1) / width;
  for (u64 p = blockIdx.x * u64(blockDim.x) + threadIdx.x; p < pieces; p += u64(gridDim.x) * blockDim.x) {
    Piece piece;
    MakePiece(work, p, piece);
    const u64 at = p * width;
    if (aligned && at + width <= segment.bytes) {
      uint4* words = reinterpret_cast<uint4*>(base + at);
      u32 changed = 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (16 * i >= width) continue;
        const uint4 made = piece.words[i];
        if (first_changed == nullptr) {
          words[i] = made;
        } else {
          const uint4 found = words[i];
          changed |= (found.x ^ made.x) | (found.y ^ made.y) | (found.z ^ made.z) | (found.w ^ made.w);
        }
      }
      if (changed == 0) continue;
    }
    const Piece bytes = piece;  // a copy, so that registers hold the other
    for (u32 i = 0; i < width && at + i < segment.bytes; ++i) {
      if (first_changed == nullptr) {
        base[at + i] = bytes.bytes[i];
      } else if (base[at + i] != bytes.bytes[i]) {
        atomicMin(&first_changed[blockIdx.y], at + i);
        break;
      }
    }
  }
}

// Adds a position-dependent digest of the bytes to *digest: equal digests, equal outputs, wherever they lie. Of the last
// byte the high half is left out where it holds no element.
extern "C" __global__ void pawl_digest(const unsigned char* data, u64 bytes, u32 half, u64* digest) {
  const bool aligned = reinterpret_cast<u64>(data) % 4 == 0;
  u64 sum = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < (bytes + 3) / 4; i += u64(gridDim.x) * blockDim.x) {
    u32 word = 0;
    if (i * 4 + 4 < bytes && aligned) {
      word = reinterpret_cast<const u32*>(data)[i];
    } else if (i * 4 + 4 < bytes) {
      for (int b = 3; b >= 0; --b) word = word << 8 | data[i * 4 + b];
    } else {
      for (u64 b = i * 4; b < bytes; ++b) word = word << 8 | (data[b] & (half && b + 1 == bytes ? 0x0f : 0xff));
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

// Of two whole numbers, without loss where a double holds it.
__device__ __forceinline__ double WholeDifference(u32 type, u64 a, u64 b) {
  const long long x = Signed(type, a), y = Signed(type, b);
  const bool above = IsSigned(type) ? x > y : u64(x) > u64(y);
  return double(above ? u64(x) - u64(y) : u64(y) - u64(x));
}

extern "C" __global__ void pawl_compare(const void* out, const void* reference, u32 type, u64 count, double absolute,
                                        double share, Difference* total) {
  double sum_absolute = 0, sum_squares = 0, sum_squares_reference = 0, max_absolute = 0;
  u64 wrong = 0, non_finite = 0, first_wrong = ~0ull;
  const bool is_float = IsFloat(type);
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const u64 got = LoadBits(out, type, i), expected = LoadBits(reference, type, i);
    const double a = ToDouble(type, got), b = ToDouble(type, expected);
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
    const double difference = is_float ? fabs(a - b) : WholeDifference(type, got, expected);
    sum_absolute += difference;
    sum_squares += difference * difference;
    sum_squares_reference += b * b;
    if (difference <= share * fabs(b)) continue;
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

// A permutation of the elements that moves every one when there is more than one: for the tolerance's self-test.
extern "C" __global__ void pawl_rotate(const void* from, void* to, u32 type, u64 count) {
  const u64 units = UnitsOf(type, count);
  for (u64 unit = blockIdx.x * u64(blockDim.x) + threadIdx.x; unit < units; unit += u64(gridDim.x) * blockDim.x) {
    StoreUnit(to, type, unit, count, [&](u64 i) { return LoadBits(from, type, (i + count / 2) % count); });
  }
}

template <u32 kWords>
__device__ void DirtyLocal(const Key& key) {
  volatile u32 local[kWords];
  for (u32 i = 0; i < kWords; ++i) {
    const u32 drawn = key.words[i % 8] ^ i * 0x9E3779B1u;
    local[(i + key.words[0]) % kWords] = drawn >> 30 == 0 ? ~0u : drawn;  // NaN, which 0 times is not 0
  }
}

// Leaves garbage in every SM's shared memory and in threads' local memory, so that nobody profits from zeros there, or
// from what it or another left. In the shared memory of about every other SM it resembles data.
extern "C" __global__ void pawl_dirty_shared(u32 words, Key key) {
  extern __shared__ volatile u32 shared[];
  DirtyLocal<256>(key);
  const bool resembles_data = key.words[blockIdx.x / 32 % 8] >> blockIdx.x % 32 & 1;
  const Lanes lanes = LanesOfType(kF32);
  for (u32 b = threadIdx.x; b * 8 < words; b += blockDim.x) {
    const Block block = ChaCha20(key, blockIdx.x, 0, b);
    for (u32 i = 0; i < 8 && b * 8 + i < words; ++i) {
      const u32 drawn = block.words[2 * i], other = block.words[2 * i + 1];
      shared[b * 8 + i] =
          resembles_data ? __float_as_uint(Normal({drawn, other})) : u32(Garbage(lanes, drawn, other));
    }
  }
}

// The same in the local memory of all threads that an SM holds, this many bytes of each.
extern "C" __global__ void __launch_bounds__(512, 3) pawl_dirty_local_2048(Key key) { DirtyLocal<512>(key); }
extern "C" __global__ void __launch_bounds__(512, 3) pawl_dirty_local_8192(Key key) { DirtyLocal<2048>(key); }
extern "C" __global__ void __launch_bounds__(512, 3) pawl_dirty_local_16384(Key key) { DirtyLocal<4096>(key); }
extern "C" __global__ void __launch_bounds__(512, 3) pawl_dirty_local_32768(Key key) { DirtyLocal<8192>(key); }

// Keeps the stream busy while the host queues what follows, so that no measured call waits for the host.
extern "C" __global__ void pawl_hold(u32 nanoseconds) {
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

// Says to the host that the stream has come to this.
extern "C" __global__ void pawl_ping(volatile u32* to, u32 drawn) {
  *to = drawn;
  __threadfence_system();
}

__device__ u64 Now() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Fills every SM, and leaves them one after another: what is launched beside it finds room for a few of its blocks at a
// time, so that blocks that rely on each other without waiting for each other are seen to.
extern "C" __global__ void __launch_bounds__(1024) pawl_crowd(Key key, u32 most, u32 late) {
  const u64 start = Now();
  const u32 stay = StayOf(key, blockIdx.x, most, late);
  while (Now() - start < stay) __nanosleep(200);
}

// Leaves room on every SM, and keeps the memory busy from half of them: the same for blocks that all start together.
// Atomics, each thread's to a line of its own, make what others load and store wait by microseconds, and by different
// times. What only keeps an SM busy would not do: blocks are placed on those that are free.
extern "C" __global__ void __launch_bounds__(1024) pawl_slow_some(Key key, u32 most, u32* memory) {
  if (ChaCha20(key, blockIdx.x, 1, 0).words[0] % 2 == 0) return;
  u32* own = memory + u64{blockIdx.x} * kSlowingWords;
  const u64 start = Now();
  while (Now() - start < most) {
#pragma unroll
    for (u32 k = 0; k < 16; ++k) atomicAdd(own + (threadIdx.x * 32 + k * 1024) % kSlowingWords, 1u);
  }
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

extern "C" __global__ void pawl_norm(const void* values, u32 type, u64 count, Norm* total) {
  double sum_squares = 0;
  u64 non_finite = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const double value = ToDouble(type, LoadBits(values, type, i));
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

// How many elements differ from the reference by more than this share of themselves.
extern "C" __global__ void pawl_differ(const void* out, const void* reference, u32 type, u64 count, double share,
                                       u64* total) {
  u64 differing = 0;
  for (u64 i = blockIdx.x * u64(blockDim.x) + threadIdx.x; i < count; i += u64(gridDim.x) * blockDim.x) {
    const u64 got = LoadBits(out, type, i), expected = LoadBits(reference, type, i);
    const double a = ToDouble(type, got), b = ToDouble(type, expected);
    const bool near = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= share * fabs(b);
    differing += IsFloat(type) ? !near : got != expected;
  }
  for (int lane = 16; lane > 0; lane /= 2) differing += __shfl_xor_sync(~0u, differing, lane);
  if (threadIdx.x % 32 == 0 && differing != 0) atomicAdd(total, differing);
}

// Mirrors Corruption in support.h.
enum Corruption : u32 { kDropTail = 1, kZeroFirstRow, kZeroLastRow, kZeroColumn, kSwapRows, kScale };

// A copy with one thing wrong, for the tolerance's self-test: `tail` elements at the end are 0; the first row, the
// last row or the last column is; the first row and the last change places; everything is multiplied.
extern "C" __global__ void pawl_corrupt(const void* from, void* to, u32 type, u64 count, u64 columns, u32 corruption,
                                        u64 tail, double factor) {
  const u64 rows = count / columns, units = UnitsOf(type, count);
  const auto corrupted = [&](u64 i) -> u64 {
    const u64 row = i / columns, column = i % columns;
    const bool ends = row == 0 || row == rows - 1;
    const u64 source = corruption == kSwapRows && ends ? (rows - 1 - row) * columns + column : i;
    const bool zero = (corruption == kDropTail && i >= count - tail) ||
                      (corruption == kZeroLastRow && row == rows - 1) || (corruption == kZeroFirstRow && row == 0) ||
                      (corruption == kZeroColumn && column == columns - 1);
    const u64 value = LoadBits(from, type, source);
    if (zero) return 0;
    return corruption == kScale ? FromDouble(type, ToDouble(type, value) * factor) : value;
  };
  for (u64 unit = blockIdx.x * u64(blockDim.x) + threadIdx.x; unit < units; unit += u64(gridDim.x) * blockDim.x) {
    StoreUnit(to, type, unit, count, corrupted);
  }
}
