// The metrics of metrics.toml: each named once, with where its value comes from.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"
#include "profiles/formula.h"
#include "profiles/ncu/ncu_csv.h"

namespace pawl {

// The sources are tried in this order: ncu's column, a value the caller gave, what driver and compiler know, formulas.
struct Metric {
  std::string name;
  std::string unit;
  std::string meaning;
  std::string ncu;              // empty: no column of its own
  bool ask = true;              // false: read when the column is there, not asked for
  std::string known;            // one of KnownNames(); empty: none
  std::vector<Formula> derive;  // the first whose inputs are all there
};

// Immutable and thread-safe.
class Metrics {
 public:
  // Every mistake of the text, as "file:line: message", one a line.
  static absl::StatusOr<Metrics> Parse(std::string_view toml, const std::string& file);
  // Of the metrics.toml that was built in.
  static const Metrics& Default();

  const std::vector<Metric>& all() const { return all_; }
  const Metric* Find(std::string_view name) const;

  // What to ask ncu for.
  std::vector<std::string> NcuNames() const;

  // ncu's columns that are missing for the metric. None: it is in `values`, or no column can give it.
  std::set<std::string> MissingColumns(const std::string& name, const std::map<std::string, double>& values) const;

  // All metrics that can be had of one launch. `kernel` may be null (no counters): geometry, compiler and driver then
  // say what they can. Values in known.metrics() count as given, so evidence that is stored can be completed with
  // metrics that were defined later.
  std::map<std::string, double> Derive(const NcuKernel* kernel, const v1::LaunchEvidence& known,
                                       const v1::GpuInfo& gpu) const;

 private:
  std::vector<Metric> all_;
};

// What is known of a launch without a profiler: geometry, the compiler's and the driver's word, the GPU's limits.

// The names that `known = "..."` in metrics.toml may use.
std::vector<std::string> KnownNames();

// No value when the evidence does not say.
std::optional<double> KnownValue(const std::string& name, const v1::LaunchEvidence& launch, const v1::GpuInfo& gpu);

}  // namespace pawl
