#pragma once
struct Grid { int nx, ny, nz; float dx; };
__device__ inline int idx3(const Grid& g, int x, int y, int z) { return (z * g.ny + y) * g.nx + x; }
__global__ void laplace(const float* __restrict__ u, float* __restrict__ v, Grid g, float c);
