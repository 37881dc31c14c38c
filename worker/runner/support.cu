// Pawl's own kernels: they make inputs and poison from a seed, check that bytes are still what a seed made them,
// compare outputs, and put the GPU into a known state between calls. Candidates never see their arguments.

typedef unsigned int u32;
typedef unsigned long long u64;

#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Mirrors Segment in support.h.
struct Segment {
  u64 address;
  u64 bytes;
  u32 content;  // what to write: see Content
  u32 type;     // v1::DataType
  u32 stream;   // tells the segments of a call apart
  u32 call;     // which call of a batch; kSeedAsIs: the seed is the call's own
};
enum Content : u32 { kNormal = 1, kUniform = 2, kRandomBytes = 3, kAllOnes = 4 };
enum Type : u32 { kF16 = 1, kBf16 = 2, kF32 = 3, kF64 = 4, kI32 = 5 };
constexpr u32 kSeedAsIs = 0xffffffffu;

__device__ __forceinline__ u64 Mix64(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

__device__ __forceinline__ u32 Mix32(u32 h) {
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

// The seed of one call of a batch; CallSeed in support.cc is the same function.
__device__ __forceinline__ u64 CallSeed(u64 seed, u32 call) {
  return call == kSeedAsIs ? seed : Mix64(seed ^ (u64(call) + 1) * 0xD1342543DE82EF95ull);
}

// 64 random bits for element i of a stream.
__device__ __forceinline__ uint2 Bits(uint2 key, u64 i) {
  const u32 a = Mix32(u32(i) * 0x9E3779B1u ^ key.x ^ Mix32(u32(i >> 32)));
  const u32 b = Mix32(a + key.y + u32(i));
  return make_uint2(a, b);
}

// Sum of four 16-bit uniforms: mean 0, variance 1, no tails beyond 3.5. Integer until the last product, so that two
// processes get the same bits.
__device__ __forceinline__ float Normal(uint2 bits) {
  const int sum = int(bits.x & 0xffff) + int(bits.x >> 16) + int(bits.y & 0xffff) + int(bits.y >> 16) - 131070;
  return float(sum) * (1.0f / 37837.2f);
}

__device__ __forceinline__ float Value(uint2 bits, u32 content) {
  return content == kUniform ? float(bits.x >> 8) * (1.0f / 16777216.0f) : Normal(bits);
}

// The 16 bytes at chunk c of a segment.
__device__ uint4 Chunk(const Segment& segment, uint2 key, u64 c) {
  if (segment.content == kAllOnes) return make_uint4(~0u, ~0u, ~0u, ~0u);
  if (segment.content == kRandomBytes || segment.type == kI32) {
    const uint2 low = Bits(key, 2 * c), high = Bits(key, 2 * c + 1);
    if (segment.content == kRandomBytes) return make_uint4(low.x, low.y, high.x, high.y);
    return make_uint4(low.x & 1023, low.y & 1023, high.x & 1023, high.y & 1023);
  }
  union {
    uint4 words;
    __half f16[8];
    __nv_bfloat16 bf16[8];
    float f32[4];
    double f64[2];
  } chunk;
  if (segment.type == kF16) {
    for (int i = 0; i < 8; ++i) chunk.f16[i] = __float2half_rn(Value(Bits(key, 8 * c + i), segment.content));
  } else if (segment.type == kBf16) {
    for (int i = 0; i < 8; ++i) chunk.bf16[i] = __float2bfloat16_rn(Value(Bits(key, 8 * c + i), segment.content));
  } else if (segment.type == kF32) {
    for (int i = 0; i < 4; ++i) chunk.f32[i] = Value(Bits(key, 4 * c + i), segment.content);
  } else {
    for (int i = 0; i < 2; ++i) chunk.f64[i] = Value(Bits(key, 2 * c + i), segment.content);
  }
  return chunk.words;
}

__device__ __forceinline__ uint2 KeyOf(const Segment& segment, u64 seed) {
  const u64 key = Mix64(CallSeed(seed, segment.call) ^ Mix64(segment.stream));
  return make_uint2(u32(key), u32(key >> 32));
}

// One row of blocks (blockIdx.y) a segment. Segments need not start or end on 16 bytes.
extern "C" __global__ void pawl_fill(const Segment* segments, u64 seed) {
  const Segment segment = segments[blockIdx.y];
  const uint2 key = KeyOf(segment, seed);
  unsigned char* base = reinterpret_cast<unsigned char*>(segment.address);
  const bool aligned = segment.address % 16 == 0;
  const u64 chunks = (segment.bytes + 15) / 16;
  for (u64 c = blockIdx.x * u64(blockDim.x) + threadIdx.x; c < chunks; c += u64(gridDim.x) * blockDim.x) {
    const uint4 words = Chunk(segment, key, c);
    if (aligned && c * 16 + 16 <= segment.bytes) {
      reinterpret_cast<uint4*>(base)[c] = words;
    } else {
      const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&words);
      for (u64 i = c * 16; i < segment.bytes && i < c * 16 + 16; ++i) base[i] = bytes[i - c * 16];
    }
  }
}

// first[segment]: offset of the first byte that is not what pawl_fill wrote; all ones where there is none.
extern "C" __global__ void pawl_verify(const Segment* segments, u64 seed, u64* first) {
  const Segment segment = segments[blockIdx.y];
  const uint2 key = KeyOf(segment, seed);
  const unsigned char* base = reinterpret_cast<const unsigned char*>(segment.address);
  const bool aligned = segment.address % 16 == 0;
  const u64 chunks = (segment.bytes + 15) / 16;
  for (u64 c = blockIdx.x * u64(blockDim.x) + threadIdx.x; c < chunks; c += u64(gridDim.x) * blockDim.x) {
    const uint4 words = Chunk(segment, key, c);
    if (aligned && c * 16 + 16 <= segment.bytes) {
      const uint4 seen = reinterpret_cast<const uint4*>(base)[c];
      if (seen.x == words.x && seen.y == words.y && seen.z == words.z && seen.w == words.w) continue;
    }
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(&words);
    for (u64 i = c * 16; i < segment.bytes && i < c * 16 + 16; ++i) {
      if (base[i] != bytes[i - c * 16]) {
        atomicMin(&first[blockIdx.y], i);
        break;
      }
    }
  }
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

// Leaves data-like garbage in every SM's shared memory, so that nobody profits from zeros there.
extern "C" __global__ void pawl_dirty_shared(u32 words, u32 seed) {
  extern __shared__ volatile u32 shared[];
  for (u32 i = threadIdx.x; i < words; i += blockDim.x) {
    shared[i] = __float_as_uint(Normal(make_uint2(Mix32(i ^ seed), Mix32(i + seed + blockIdx.x))));
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
