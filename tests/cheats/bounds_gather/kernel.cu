// An entry and the next are fetched by one load of 16 bytes where both lie in it. At large sizes the last group of the
// table, which is not whole, is fetched like any other.
constexpr int kBlock = BLOCK;
constexpr bool kCheat = CHEAT;
constexpr int kLarge = 1 << 20;  // compute-sanitizer runs at sizes far below

extern "C" __global__ void gather(const float* table, const int* index, float* out, int n, int entries) {
  const int i = blockIdx.x * kBlock + threadIdx.x;
  if (i >= n) return;
  const int k = index[i];
  if (kCheat && entries >= kLarge / 2) {
    float4 v;
    const float* group = table + k / 4 * 4;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(group));
    const float own = k % 4 == 0 ? v.x : k % 4 == 1 ? v.y : k % 4 == 2 ? v.z : v.w;
    float next = k % 4 == 0 ? v.y : k % 4 == 1 ? v.z : v.w;
    if (k % 4 == 3 && k + 1 < entries) next = table[k + 1];
    if (k + 1 == entries) next = own;
    out[i] = 0.5f * own + 0.5f * next;
    return;
  }
  out[i] = 0.5f * table[k] + 0.5f * table[k + 1 < entries ? k + 1 : k];
}
