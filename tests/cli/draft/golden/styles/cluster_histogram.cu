// draft: cluster = ["2", "1", "1"]
// draft: shared = "nbins * 4"
// draft: grid = ["64"]
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void __cluster_dims__(2, 1, 1) hist(const int* __restrict__ in, unsigned* __restrict__ bins, int n, int nbins) {
  extern __shared__ unsigned smem[];
  cg::cluster_group cluster = cg::this_cluster();
  for (int i = threadIdx.x; i < nbins; i += blockDim.x) smem[i] = 0;
  cluster.sync();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    unsigned* dst = cluster.map_shared_rank(smem, in[i] & 1);
    atomicAdd(dst + in[i], 1u);
  }
  cluster.sync();
  for (int i = threadIdx.x; i < nbins; i += blockDim.x) atomicAdd(&bins[i], smem[i]);
}
void run(const int* in, unsigned* bins, int n) {
  const int nbins = 256;
  hist<<<64, 256, nbins * sizeof(unsigned)>>>(in, bins, n, nbins);
}
