#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profiles/verdict_protocol.h"

namespace pawl {

// Pairs of kernels compared in several fresh processes on a real GPU, to draw noise from. pawl-verdict-study writes
// them: JSON lines, gzip-compressed or not, one line a process:
//   {"pair": "NAME", "process": 0, "log_ratios": [...], "parent": [us, ...], "candidate": [...], "anchor": [...]}
class RecordedSeries {
 public:
  struct Process {
    std::vector<double> log_ratios, parent, candidate, anchor;
  };
  struct Comparison {
    std::string name;
    std::vector<Process> processes;
  };

  // All *.jsonl and *.jsonl.gz of a folder. NotFound: there are none. Leaves out comparisons of fewer than `processes`.
  static absl::StatusOr<RecordedSeries> Load(const std::string& folder, size_t processes);

  const std::vector<Comparison>& comparisons() const { return comparisons_; }

  // A process that compares a kernel with one that is slower by `gain`: the pairs are those of a recorded process, from
  // a random one on and in their order, so that drift stays in, less the mean of all processes of that comparison.
  // Their own mean is widened for that. `random` must outlive the result.
  PairSource Draw(const Comparison& comparison, double gain, std::mt19937_64& random) const;

 private:
  std::vector<Comparison> comparisons_;
};

// Means by process, about the mean of all and widened for it: what a process adds by itself.
std::vector<double> ProcessEffects(const std::vector<std::vector<double>>& processes);
double Mean(const std::vector<double>& values);

}  // namespace pawl
