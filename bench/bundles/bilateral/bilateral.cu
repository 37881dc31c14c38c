// A bilateral filter of 7 x 7 pixels; what is outside of the picture is its nearest pixel. A thread has X_EACH x Y_EACH pixels,
// read from global memory or from a tile in shared memory.
constexpr int kRadius = 3, kUnroll = ROWS_UNROLL;
constexpr float kSpace = -0.5f / (2.0f * 2.0f), kTone = -0.5f / (0.1f * 0.1f);

__device__ float Weight(int dx, int dy, float difference) {
  const float exponent = kSpace * float(dx * dx + dy * dy) + kTone * difference * difference;
#if EXP == 2
  return exp2f(1.44269504f * exponent);
#elif EXP == 1
  return __expf(exponent);
#else
  return expf(exponent);
#endif
}

constexpr int kTileX = BX * X_EACH, kTileY = BY * Y_EACH;

extern "C" __global__ void __launch_bounds__(BX * BY) bilateral(const float* in, float* out, int width, int height) {
  const int x0 = blockIdx.x * kTileX, y0 = blockIdx.y * kTileY;
#if STAGED
  constexpr int kRow = kTileX + 2 * kRadius + PAD;
  __shared__ float tile[(kTileY + 2 * kRadius) * kRow];
  for (int y = threadIdx.y; y < kTileY + 2 * kRadius; y += BY) {
    const int from = min(max(y0 + y - kRadius, 0), height - 1);
    for (int x = threadIdx.x; x < kTileX + 2 * kRadius; x += BX) {
      tile[y * kRow + x] = in[(long long)from * width + min(max(x0 + x - kRadius, 0), width - 1)];
    }
  }
  __syncthreads();
#endif
#if INSIDE
  const bool inside = x0 >= kRadius && y0 >= kRadius && x0 + kTileX + kRadius <= width && y0 + kTileY + kRadius <= height;
#else
  const bool inside = false;
#endif
  const auto pixel = [&](int x, int y) {
#if STAGED
    return tile[(y - y0 + kRadius) * kRow + x - x0 + kRadius];
#else
    if (inside) return in[(long long)y * width + x];
    return in[(long long)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
#endif
  };

#pragma unroll
  for (int j = 0; j < Y_EACH; ++j) {
#pragma unroll
    for (int i = 0; i < X_EACH; ++i) {
      const int x = x0 + i * BX + threadIdx.x, y = y0 + j * BY + threadIdx.y;
      if (!inside && (x >= width || y >= height)) continue;
      const float middle = pixel(x, y);
      float sum = 0, weights = 0;
#pragma unroll kUnroll
      for (int dy = -kRadius; dy <= kRadius; ++dy) {
#pragma unroll
        for (int dx = -kRadius; dx <= kRadius; ++dx) {
          const float other = pixel(x + dx, y + dy);
          const float weight = Weight(dx, dy, other - middle);
          sum += weight * other;
          weights += weight;
        }
      }
#if DIVIDE
      out[(long long)y * width + x] = __fdividef(sum, weights);
#else
      out[(long long)y * width + x] = sum / weights;
#endif
    }
  }
}
