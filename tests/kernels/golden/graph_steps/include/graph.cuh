#pragma once

#include <cuda_fp16.h>

#include "detail/load.cuh"

namespace steps {

struct Graph {
  const int* offsets;
  const long long* columns;
  const __half* weight;
  long long edges;
};

struct Tables {
  const float* by_column;
  const float* table;
};

}  // namespace steps
