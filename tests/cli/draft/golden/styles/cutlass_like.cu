// incomplete: the fields of Op::Params
// draft: type: typename Op::Params is not known; a struct is a [[struct]] with its fields
// draft: block = ["kThreads"]
// draft: replaces = "static constexpr int kThreads = {};"
#include <cuda_fp16.h>
template <int M_, int N_, int K_> struct GemmShape { static constexpr int kM = M_, kN = N_, kK = K_; };
template <typename Element, typename Accum, typename Shape>
struct GemmKernel {
  struct Params { const Element* A; const Element* B; Accum* C; int m, n, k; int lda, ldb, ldc; float alpha; };
  struct SharedStorage { Element a[Shape::kM * Shape::kK]; Element b[Shape::kK * Shape::kN]; };
  static constexpr int kThreads = 256;
  __device__ void operator()(Params const& p, SharedStorage& s) const {
    int row0 = blockIdx.y * Shape::kM, col0 = blockIdx.x * Shape::kN;
    for (int i = threadIdx.x; i < Shape::kM * Shape::kN; i += kThreads) {
      int r = row0 + i / Shape::kN, c = col0 + i % Shape::kN;
      if (r >= p.m || c >= p.n) continue;
      Accum acc = 0;
      for (int k = 0; k < p.k; ++k) acc += Accum(p.A[r * p.lda + k]) * Accum(p.B[k * p.ldb + c]);
      p.C[r * p.ldc + c] = p.alpha * acc;
    }
  }
};
template <typename Op> __global__ void Kernel(typename Op::Params params) {
  extern __shared__ char smem[];
  Op op;
  op(params, *reinterpret_cast<typename Op::SharedStorage*>(smem));
}
using Op = GemmKernel<__half, float, GemmShape<64, 64, 32>>;
void launch(const __half* A, const __half* B, float* C, int m, int n, int k) {
  Op::Params p{A, B, C, m, n, k, k, n, n, 1.0f};
  dim3 grid((n + 63) / 64, (m + 63) / 64);
  Kernel<Op><<<grid, Op::kThreads, sizeof(Op::SharedStorage)>>>(p);
}
