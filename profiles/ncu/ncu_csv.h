// Reads what ncu prints with `--csv`: the raw page (`--page raw --print-units base`) and the details page.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/evidence.pb.h"

namespace pawl {

// One profiled launch. A cell that is empty, `nan`, `n/a`, `no data` or infinite is in none of the maps: it is missing.
struct NcuKernel {
  int id = 0;
  std::string name;         // as ncu prints it: "copy(const float *, float *, int)"
  std::string block, grid;  // "(256, 1, 1)"
  std::map<std::string, double> values;
  std::map<std::string, std::string> units;  // of columns that have one
  std::map<std::string, std::string> texts;  // cells that are no number
};

// One element a launch, in file order. Errors: no header, a unit that is not one of ncu's base units, damaged or cut
// rows, no kernel at all (with what ncu said about it).
absl::StatusOr<std::vector<NcuKernel>> ReadNcuRaw(std::string_view csv);

// The device as the columns `device__attribute_*` describe it; fields without a column stay unset.
v1::GpuInfo GpuOf(const NcuKernel& kernel);

// ncu's own advice by kernel ID. Rules of type INF only comment on others and are left out. A kernel without advice
// has an empty entry.
absl::StatusOr<std::map<int, std::vector<v1::Advice>>> ReadNcuDetails(std::string_view csv);

// Which of the metrics this ncu and GPU lack, from what `ncu --query-metrics` printed. It lists metrics without their
// suffix; what has none (launch__grid_size) comes from the launch or the driver and is never listed. An error when the
// output names no metric at all.
absl::StatusOr<std::vector<std::string>> MissingNcuMetrics(const std::vector<std::string>& wanted,
                                                           std::string_view query_output);

}  // namespace pawl
