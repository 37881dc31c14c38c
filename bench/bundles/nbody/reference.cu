// One thread a body, in double.
extern "C" __global__ void accelerate_reference(const float* bodies, float* out, int n, float softening) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  double x = 0, y = 0, z = 0;
  for (int j = 0; j < n; ++j) {
    const double dx = double(bodies[4 * j]) - bodies[4 * i];
    const double dy = double(bodies[4 * j + 1]) - bodies[4 * i + 1];
    const double dz = double(bodies[4 * j + 2]) - bodies[4 * i + 2];
    const double squared = dx * dx + dy * dy + dz * dz + softening;
    const double pull = bodies[4 * j + 3] / (squared * sqrt(squared));
    x += dx * pull;
    y += dy * pull;
    z += dz * pull;
  }
  out[3 * i] = float(x);
  out[3 * i + 1] = float(y);
  out[3 * i + 2] = float(z);
}
