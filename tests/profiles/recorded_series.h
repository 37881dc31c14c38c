#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profiles/verdict_protocol.h"

namespace pawl {

// Times of a kernel compared with itself on a real GPU, to draw noise from. The file is JSON, gzip-compressed:
//   {"gpu": ..., "date": ..., "kernel": ..., "measurements": 30, "comparisons": [[us, ...], ...]}
// A comparison is one process's measurements in time order, pair by pair, each pair A B B A with measurements / 2 a
// segment.
class RecordedSeries {
 public:
  static absl::StatusOr<RecordedSeries> Load(const std::string& path);

  // A process whose pairs are those of a recorded comparison, from a random one on and in their order, so that drift
  // stays in; measurements are drawn again within each segment, and the two sides may change places. The candidate is
  // faster than the parent by `gain`. `random` must outlive the result.
  PairSource Process(double gain, std::mt19937_64& random) const;

  size_t comparisons() const { return comparisons_.size(); }

 private:
  using Segment = std::vector<double>;
  using Pair = std::vector<Segment>;  // A B B A

  std::vector<std::vector<Pair>> comparisons_;
};

}  // namespace pawl
