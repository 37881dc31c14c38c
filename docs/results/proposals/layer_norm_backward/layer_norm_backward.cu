// The backward pass of layer normalisation over rows of C columns. With n = (x - mean) * rstd and s = dy * gamma:
//   dx = rstd * (s - mean of s - n * mean of s n),   dgamma = sum over rows of dy n,   dbeta = sum over rows of dy.

// One thread a row.
extern "C" __global__ void input_gradient(const float* dy, const float* x, const float* mean, const float* rstd,
                                          const float* gamma, float* dx, int N, int C) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= N) return;
  dy += static_cast<long long>(row) * C;
  x += static_cast<long long>(row) * C;
  dx += static_cast<long long>(row) * C;
  const float m = mean[row];
  const float r = rstd[row];

  float sum = 0.0f;
  float sum_normal = 0.0f;
  for (int c = 0; c < C; ++c) {
    const float scaled = dy[c] * gamma[c];
    sum += scaled;
    sum_normal += scaled * (x[c] - m) * r;
  }
  sum /= C;
  sum_normal /= C;
  for (int c = 0; c < C; ++c) dx[c] = r * (dy[c] * gamma[c] - sum - (x[c] - m) * r * sum_normal);
}

// One thread a column.
extern "C" __global__ void weight_gradients(const float* dy, const float* x, const float* mean, const float* rstd,
                                            float* dgamma, float* dbeta, int N, int C) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= C) return;
  float sum = 0.0f;
  float sum_normal = 0.0f;
  for (int row = 0; row < N; ++row) {
    const long long at = static_cast<long long>(row) * C + column;
    sum += dy[at];
    sum_normal += dy[at] * (x[at] - mean[row]) * rstd[row];
  }
  dgamma[column] = sum_normal;
  dbeta[column] = sum;
}
