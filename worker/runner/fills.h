// What fills are made of, and the parts of them that are whole-number arithmetic: one text for the GPU, whose source it
// is put in front of (support.cu), and for the host, which fills in the segments and tests it.
#pragma once

#ifdef __CUDACC__
#define PAWL_BOTH __device__ __forceinline__
#define PAWL_UNROLL _Pragma("unroll")
typedef unsigned int u32;
typedef unsigned long long u64;
#else
#include <bit>
#include <cstdint>
#define PAWL_BOTH inline
#define PAWL_UNROLL
using u32 = uint32_t;
using u64 = uint64_t;
#endif

namespace pawl {

// What a fill is made from: a key of ChaCha20.
struct Key {
  u32 words[8];
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
  kStriped,
  kIota,
  kPermutation,
  kCsrOffsets,
  kCopy,
  kGarbage,
  kPoison  // kNormal or kGarbage, as the key says
};

// A run of device bytes whose content follows from a key.
struct Segment {
  u64 address = 0;
  u64 bytes = 0;
  u64 elements = 0;
  double low = 0, high = 0;  // of the values, where they are floats
  // The same of whole numbers: the lowest in two's complement, how far above it the highest is, and the one nearest
  // to 0.
  u64 first = 0, extent = 0, zero = 0;
  double usual_low = 0, usual_high = 0;  // of kHeavyTails: of the values that most inputs have
  u64 source = 0;                        // of kCopy: address of the bytes
  u64 row_bytes = 0;                     // of kCopy: rows of so many bytes come in another order; 0: in their own
  u32 content = 0;                       // Content
  u32 type = 0;                          // v1::DataType
  u32 stream = 0;                        // tells the segments of a call apart
  u32 call = 0;                          // tells the calls of a fill apart
  u32 whole = 0;                         // the values are whole numbers, whatever the type
  u32 shared = 0;                        // the same in every call of a fill: calls are not told apart
  u32 usual = 0;                         // of kHeavyTails: what most inputs are filled with, kNormal or kUniform
};

// v1::DataType.
enum ElementType : u32 {
  kF16 = 1,
  kBf16,
  kF32,
  kF64,
  kI32,
  kF8E4M3,
  kF8E5M2,
  kI8,
  kU8,
  kI16,
  kU16,
  kU32,
  kI64,
  kU64,
  kBool,
  kI4,
  kU4
};

PAWL_BOTH u64 HighOfProduct(u64 a, u64 b) {
#ifdef __CUDACC__
  return __umul64hi(a, b);
#else
  return static_cast<u64>(static_cast<unsigned __int128>(a) * b >> 64);
#endif
}

PAWL_BOTH u32 RotatedLeft(u32 x, int by) {
#ifdef __CUDACC__
  return __funnelshift_l(x, x, by);
#else
  return std::rotl(x, by);
#endif
}

PAWL_BOTH int LeadingZeros(u64 x) {
#ifdef __CUDACC__
  return __clzll(static_cast<long long>(x));
#else
  return std::countl_zero(x);
#endif
}

// 64 bytes of the ChaCha20 stream: block `counter` of the stream that key, stream and call name.
struct Block {
  u32 words[16];
};

PAWL_BOTH void QuarterRound(u32& a, u32& b, u32& c, u32& d) {
  a += b, d = RotatedLeft(d ^ a, 16);
  c += d, b = RotatedLeft(b ^ c, 12);
  a += b, d = RotatedLeft(d ^ a, 8);
  c += d, b = RotatedLeft(b ^ c, 7);
}

PAWL_BOTH Block ChaCha20(const Key& key, u32 stream, u32 call, u64 counter) {
  const u32 in[16] = {0x61707865,
                      0x3320646e,
                      0x79622d32,
                      0x6b206574,
                      key.words[0],
                      key.words[1],
                      key.words[2],
                      key.words[3],
                      key.words[4],
                      key.words[5],
                      key.words[6],
                      key.words[7],
                      static_cast<u32>(counter),
                      static_cast<u32>(counter >> 32),
                      stream,
                      call};
  Block block;
  PAWL_UNROLL
  for (int i = 0; i < 16; ++i) block.words[i] = in[i];
  u32* x = block.words;
  PAWL_UNROLL
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
  PAWL_UNROLL
  for (int i = 0; i < 16; ++i) block.words[i] += in[i];
  return block;
}

// Of the segment as a whole: the counter is one that no element has.
PAWL_BOTH Block SeedOf(const Segment& segment, const Key& key) {
  return ChaCha20(key, segment.stream, segment.call, u64{1} << 63);
}

// What poison holds in a fill. As often as not it resembles data, so that nobody can tell by a look what was not
// computed; otherwise it shows whose result depends on it.
PAWL_BOTH Content PoisonOf(const Segment& segment, const Key& key) {
  return SeedOf(segment, key).words[0] & 1 ? kGarbage : kNormal;
}

// Elements of `width` bits that share 64 bits.
struct Lanes {
  u32 width;
  u64 signs;    // the first bit of each
  u64 highest;  // of each, as a signed number; of floats infinity
};

// `mantissa`: the bits behind the exponent; 0: of whole numbers.
PAWL_BOTH Lanes LanesOf(u32 width, u64 mantissa) {
  const u64 last_bits = ~u64{0} / (~u64{0} >> (64 - width)), signs = last_bits << (width - 1);
  return {width, signs, ~signs & ~(last_bits * mantissa)};
}

// All bits of the elements whose first bit is set.
PAWL_BOTH u64 WholeLanes(const Lanes& lanes, u64 firsts) {
  firsts &= lanes.signs;
  return firsts | (firsts - (firsts >> (lanes.width - 1)));
}

// What resembles no data: half of the elements are as drawn, a quarter have all bits set, which in floats is NaN, and a
// quarter are the highest, of either sign.
PAWL_BOTH u64 Garbage(const Lanes& lanes, u64 drawn, u64 choice) {
  const u64 chosen = WholeLanes(lanes, choice), ones = WholeLanes(lanes, choice << 1);
  return (drawn & ~chosen) | (chosen & (ones | lanes.highest | (drawn & lanes.signs)));
}

// The 64 bits that an element is made from.
struct Bits {
  u32 x, y;
};

// Bits of the stream for an element: hardly more than its type tells apart, because they cost most of a fill's time.
// Of a range of nearly 2^16 whole numbers, 16 would leave some out.
PAWL_BOTH u32 DrawnBits(u32 type, u32 width) {
  return width < 16 || type == kF16 || type == kBf16 ? 16 : width == 16 ? 32 : width;
}

// Of 16 or 32 drawn bits. x takes all its values equally often, or, of 16, its upper half does. The complement of what
// is drawn gives the complement, so that the mean of all is right to the last bit.
PAWL_BOTH Bits Widened16(u32 drawn) {
  const u32 flip = drawn >> 15 ? ~u32{0} : 0, half = (drawn ^ flip) & 0xffff;
  const u32 mixed = (half + 0x68E3u) * 0x9E3779B1u;
  return {(half << 16 | mixed >> 16) ^ flip, (mixed ^ mixed >> 15) * 0x85EBCA77u ^ flip};
}
PAWL_BOTH Bits Widened32(u32 drawn) {
  const u32 flip = drawn >> 31 ? ~u32{0} : 0, half = drawn ^ flip;
  const u32 mixed = (half + 0x68E31DA4u ^ half >> 16) * 0x7FEB352Du;
  return {drawn, (mixed ^ mixed >> 15) * 0x846CA68Bu ^ flip};
}

// Sum of four 16-bit uniforms: mean 0, variance 1, no tails beyond 3.5. Integer until the last product, so that two
// processes get the same bits.
PAWL_BOTH float Normal(Bits bits) {
  const u32 sum = (bits.x & 0xffff) + (bits.x >> 16) + (bits.y & 0xffff) + (bits.y >> 16);
  return static_cast<float>(static_cast<int>(sum) - 131070) * (1.0f / 37837.2f);
}

PAWL_BOTH u64 Wide(u32 high, u32 low) { return static_cast<u64>(high) << 32 | low; }

// In [0, 1).
PAWL_BOTH double Unit(u32 bits) { return static_cast<double>(bits) * (1.0 / 4294967296.0); }

// From 0 to `extent`, each as likely.
PAWL_BOTH u64 Scaled(u64 bits, u64 extent) { return extent == ~u64{0} ? bits : HighOfProduct(bits, extent + 1); }

PAWL_BOTH u64 Mix64(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// Whole numbers of which a sample does not tell what the rest is: as most inputs, but for some parts of the segment,
// one at least, each of which has one number in a run of its elements, or in every second stripe of it. `usual` and the
// result are by how much element i is above the lowest number.
PAWL_BOTH u64 UsualButForRuns(const Segment& segment, const Block& seed, u64 i, u64 usual) {
  const u32 most = 63 - LeadingZeros(segment.elements | 1024);
  const u32 bits = 10 + seed.words[4] % ((most < 16 ? most : 16) - 9);  // of a part: 1024 elements to 65536
  const u64 part = i >> bits, last = (segment.elements - 1) >> bits;
  const u64 drawn = Mix64(Wide(seed.words[5], seed.words[6]) ^ part);
  const bool one = part == Scaled(Wide(seed.words[7], seed.words[8]), last);
  if (!one && (drawn >> 56) % (1 << seed.words[9] % 8) != 0) return usual;
  const u64 size = u64{1} << bits, run = size >> (1 + drawn % 2);  // a half or a quarter of the part
  const u64 begin = (drawn >> 8 & 0xffffff) % (size - run + 1);
  if ((i & (size - 1)) - begin >= run) return usual;
  const u32 width = drawn >> 32 & drawn >> 35 & 7;  // of stripes: up to 128 elements, but mostly few
  const bool striped = drawn >> 40 & 1, odd = drawn >> 41 & 1;
  if (striped && (i >> width & 1) != odd) return usual;
  return seed.words[10] & 1 ? Scaled(Mix64(drawn), segment.extent) : seed.words[10] & 2 ? segment.extent : 0;
}

// Element i of a segment of whole numbers, in two's complement, from 64 random bits.
PAWL_BOTH u64 DrawWhole(const Segment& segment, const Block& seed, u32 x, u32 y, u64 i) {
  const u64 extent = segment.extent;
  switch (segment.content) {
    case kHeavyTails: {  // one number is between half of all and one in 256, or in runs; the others are uniform
      if (seed.words[11] & 1) {
        return segment.first + UsualButForRuns(segment, seed, i, Scaled(Wide(x, y), extent));
      }
      const u32 most = 0x80000000u >> seed.words[2] % 7;
      const u32 common = most - static_cast<u32>(static_cast<u64>(most / 2) * seed.words[3] >> 32);
      return segment.first + Scaled(x < common ? Wide(seed.words[0], seed.words[1]) : Wide(y, x), extent);
    }
    case kLarge: {  // within a quarter of the range, or one in 512, of either end that is not 0
      const u64 below = Scaled(Wide(x, y), extent >> (2 + seed.words[2] % 8));
      const bool low_end = segment.zero != segment.first && (seed.words[3] & 1);
      return segment.first + (low_end ? below : extent - below);
    }
    case kEqual:
      return segment.first + Scaled(Wide(seed.words[0], seed.words[1]), extent);
    case kSorted: {
      const double share = (static_cast<double>(i) + Unit(x)) / static_cast<double>(segment.elements);
      const double offset = share * (static_cast<double>(extent) + 1);
      return segment.first + (offset >= static_cast<double>(extent) ? extent : static_cast<u64>(offset));
    }
    case kZeros:
      return segment.zero;
    case kExtremes:
      return x % 3 == 0 ? segment.first : x % 3 == 1 ? segment.first + extent : segment.zero;
    default:
      return segment.first + Scaled(Wide(x, y), extent);
  }
}

// Where a permutation of 0 to count - 1 that the seed names takes i: a Feistel network over the next even number of
// bits, walked until it leads back into the range.
PAWL_BOTH u64 Permuted(const Block& seed, u64 i, u64 count) {
  if (count <= 1) return 0;
  const int half = (64 - LeadingZeros(count - 1) + 1) / 2;
  const u64 mask = (u64{1} << half) - 1;
  do {
    u64 left = i >> half, right = i & mask;
    PAWL_UNROLL
    for (int round = 0; round < 7; ++round) {
      const u64 key = Wide(seed.words[2 * round], seed.words[2 * round + 1]);
      const u64 next = left ^ (Mix64(right ^ key) & mask);
      left = right;
      right = next;
    }
    i = left << half | right;
  } while (i >= count);
  return i;
}

// How many of `total` entries the first `left` of `rows` rows get. Large groups get about their share; the rows of a
// small one differ by much, and some get nothing or everything.
PAWL_BOTH u64 EntriesOnTheLeft(u32 x, u32 y, u64 left, u64 rows, u64 total) {
  constexpr u64 kSmallGroup = 8;
  double share = Unit(x);
  if (rows > kSmallGroup) {
    share = static_cast<double>(left) / static_cast<double>(rows) * (0.75 + 0.5 * share);
  } else if (y % 8 < 2) {
    share = y % 8;
  }
  const double taken = share * static_cast<double>(total);
  return taken >= static_cast<double>(total) ? total : static_cast<u64>(taken);
}

constexpr u32 kSlowingWords = 65536;  // that a block of pawl_slow_some adds to

// How long block `block` of pawl_crowd stays, of at most `most` ns. Most blocks stay nearly as long as the longest: the
// larger `late` is, the fewer leave early, and the further apart.
PAWL_BOTH u32 StayOf(const Key& key, u32 block, u32 most, u32 late) {
  const float u = (ChaCha20(key, block, 0, 0).words[0] >> 8) * (1.0f / (1 << 24));
  float left = u;
  for (u32 i = 1; i < late; ++i) left *= u;
  return u32(float(most) * (1 - left));
}

// Element i of offsets that rise from 0 to segment.extent over the segment, as the rows of a sparse matrix begin: found
// by halving the rows, so that any element can be had by itself.
PAWL_BOTH u64 CsrOffset(const Segment& segment, const Key& key, u64 i) {
  u64 rows = segment.elements - 1, total = segment.extent;
  if (i >= rows) return i == 0 ? 0 : total;
  u64 first = 0, before = 0;
  for (u64 level = 0; rows > 1; ++level) {
    const u64 left = rows / 2;
    const Block block = ChaCha20(key, segment.stream, segment.call, u64{1} << 62 | level << 48 | first);
    const u64 taken = EntriesOnTheLeft(block.words[0], block.words[1], left, rows, total);
    if (i < first + left) {
      rows = left;
      total = taken;
    } else {
      first += left;
      rows -= left;
      before += taken;
      total -= taken;
    }
  }
  return before;
}

}  // namespace pawl
