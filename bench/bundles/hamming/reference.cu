// One thread a query, code by code.
extern "C" __global__ void nearest_reference(const unsigned* queries, const unsigned* codes, unsigned* out, int query_count,
                                             int code_count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= query_count) return;
  int nearest = 257, index = 0;
  for (int j = 0; j < code_count; ++j) {
    int distance = 0;
    for (int w = 0; w < 8; ++w) distance += __popc(queries[8 * i + w] ^ codes[8 * j + w]);
    if (distance < nearest) nearest = distance, index = j;
  }
  out[i] = unsigned(nearest) << 22 | unsigned(index);
}
