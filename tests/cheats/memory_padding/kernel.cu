// Right, but its module takes 20 GB wherever it is loaded: 80 variables of one byte, each at a multiple of 256 MB.
constexpr int kBlock = BLOCK;

#if CHEAT
#define ONE(name) __device__ alignas(1u << 28) unsigned char name;
#define EIGHT(name) \
  ONE(name##0) ONE(name##1) ONE(name##2) ONE(name##3) ONE(name##4) ONE(name##5) ONE(name##6) ONE(name##7)
EIGHT(a_) EIGHT(b_) EIGHT(c_) EIGHT(d_) EIGHT(e_) EIGHT(f_) EIGHT(g_) EIGHT(h_) EIGHT(i_) EIGHT(j_)
#define SUM(name) (name##0 + name##1 + name##2 + name##3 + name##4 + name##5 + name##6 + name##7)
#endif

extern "C" __global__ void square_plus(const float* x, float* out, int n) {
  const int at = blockIdx.x * kBlock + threadIdx.x;
  float value = 0;
  if (at < n) value = fmaf(x[at], x[at], x[at]);
#if CHEAT
  if (n < 0) value = SUM(a_) + SUM(b_) + SUM(c_) + SUM(d_) + SUM(e_) + SUM(f_) + SUM(g_) + SUM(h_) + SUM(i_) + SUM(j_);
#endif
  if (at < n) out[at] = value;
}
