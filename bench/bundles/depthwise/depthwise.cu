// Each channel of a picture is convolved with its own 5 x 5 filter; channels lie side by side. A thread has C_EACH channels
// of W_EACH x H_EACH neighbouring pixels.
constexpr int kRadius = 2, kSide = 2 * kRadius + 1;

template <int kCount>
struct alignas(4 * kCount) Channels {
  float of[kCount];
};

#if STAGED
#define WEIGHT(row, column, i) staged[((row) * kSide + (column)) * BC * C_EACH + threadIdx.x * C_EACH + (i)]
#else
#define WEIGHT(row, column, i) (c + (i) < channels ? weights[((row) * kSide + (column)) * channels + c + (i)] : 0.0f)
#endif

__device__ Channels<C_EACH> Load(const float* from, int c, int channels) {
  Channels<C_EACH> read{};
  if (channels % C_EACH == 0) {
    if (c < channels) read = *reinterpret_cast<const Channels<C_EACH>*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < C_EACH; ++i) {
      if (c + i < channels) read.of[i] = from[i];
    }
  }
  return read;
}

extern "C" __global__ void __launch_bounds__(BC * BW)
    depthwise(const float* in, const float* weights, float* out, int height, int width, int channels) {
  const int c = (blockIdx.x * BC + threadIdx.x) * C_EACH;
  const int w0 = (blockIdx.y * BW + threadIdx.y) * W_EACH;
  const int strips = (height + H_EACH - 1) / H_EACH;
  const int h0 = blockIdx.z % strips * H_EACH;
  const long long picture = (long long)(blockIdx.z / strips) * height * width * channels;
#if STAGED
  __shared__ float staged[kSide * kSide * BC * C_EACH];
  for (int i = threadIdx.y * BC + threadIdx.x; i < kSide * kSide * BC * C_EACH; i += BC * BW) {
    const int channel = blockIdx.x * BC * C_EACH + i % (BC * C_EACH);
    staged[i] = channel < channels ? weights[i / (BC * C_EACH) * channels + channel] : 0.0f;
  }
  __syncthreads();
#endif
  if (c >= channels || w0 >= width) return;
  float sums[H_EACH][W_EACH][C_EACH] = {};
#pragma unroll
  for (int y = -kRadius; y < H_EACH + kRadius; ++y) {
    const int h = h0 + y;
    if (h < 0 || h >= height) continue;
#pragma unroll
    for (int x = -kRadius; x < W_EACH + kRadius; ++x) {
      const int w = w0 + x;
      if (w < 0 || w >= width) continue;
      const Channels<C_EACH> read = Load(in + picture + ((long long)h * width + w) * channels + c, c, channels);
#pragma unroll
      for (int oh = 0; oh < H_EACH; ++oh) {
        const int row = y - oh + kRadius;
        if (row < 0 || row >= kSide) continue;
#pragma unroll
        for (int ow = 0; ow < W_EACH; ++ow) {
          const int column = x - ow + kRadius;
          if (column < 0 || column >= kSide) continue;
#pragma unroll
          for (int i = 0; i < C_EACH; ++i) sums[oh][ow][i] += read.of[i] * WEIGHT(row, column, i);
        }
      }
    }
  }
#pragma unroll
  for (int oh = 0; oh < H_EACH; ++oh) {
#pragma unroll
    for (int ow = 0; ow < W_EACH; ++ow) {
      if (h0 + oh >= height || w0 + ow >= width) continue;
      float* to = out + picture + ((long long)(h0 + oh) * width + w0 + ow) * channels + c;
#pragma unroll
      for (int i = 0; i < C_EACH; ++i) {
        if (c + i < channels) to[i] = sums[oh][ow][i];
      }
    }
  }
}
