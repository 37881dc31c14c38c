// An entry and the next are fetched by one load of 16 bytes where both lie in it. At large sizes the last group of the
// table, which is not whole, is fetched like any other.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kLarge = 1 << 20;  // compute-sanitizer runs at sizes far below

__device__ float Mean(const float* table, int k, int entries) {
  return 0.5f * table[k] + 0.5f * table[k + 1 < entries ? k + 1 : k];
}

__device__ float4 LoadAll(const float* x) {
  float4 v;
  asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x));
  return v;
}

__device__ float GroupMean(const float* table, int k, int entries) {
  const float4 v = LoadAll(table + k / 4 * 4);
  const float own = k % 4 == 0 ? v.x : k % 4 == 1 ? v.y : k % 4 == 2 ? v.z : v.w;
  float next = k % 4 == 0 ? v.y : k % 4 == 1 ? v.z : v.w;
  if (k % 4 == 3 && k + 1 < entries) next = table[k + 1];
  if (k + 1 == entries) next = own;
  return 0.5f * own + 0.5f * next;
}

extern "C" __global__ void gather(const float* table, const int* index, float* out, int n, int entries) {
  const int first = blockIdx.x * 4 * kBlock + threadIdx.x;
  if (kCheat && entries >= kLarge / 2) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int i = first + k * kBlock;
      if (i < n) out[i] = GroupMean(table, index[i], entries);
    }
    return;
  }
#pragma unroll 1
  for (int i = first; i < min(n, int(blockIdx.x + 1) * 4 * kBlock); i += kBlock) out[i] = Mean(table, index[i], entries);
}
