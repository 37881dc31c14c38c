// nvcc -cubin -arch=sm_90a symbols.cu
namespace club {
__constant__ float weights[8];
}
static __constant__ int limits[4];
__constant__ float given[2] = {1, 2};
__device__ double state[3];
namespace {
__constant__ short order[6];
}

extern "C" __global__ void symbols(float* out, int n) {
  out[n] = club::weights[n % 8] + limits[n % 4] + given[n % 2] + float(state[n % 3]) + order[n % 6];
}
