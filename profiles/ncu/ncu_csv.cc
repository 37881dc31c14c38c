#include "profiles/ncu/ncu_csv.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profiles/ncu/csv_rows.h"

namespace pawl {
namespace {

using Cells = std::vector<std::string_view>;

absl::Status Bad(int line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("ncu CSV line ", line, ": ", what));
}

absl::Status NoKernels(const CsvRows& rows, const std::string& what) {
  if (!rows.status().ok()) return absl::InvalidArgumentError(absl::StrCat("ncu CSV ", rows.status().message()));
  const std::string said =
      rows.errors().empty() ? "" : absl::StrCat(" (ncu says: ", absl::StrJoin(rows.errors(), "; "), ")");
  return absl::NotFoundError(absl::StrCat("ncu CSV: ", what, said));
}

// The columns both pages begin with.
struct Header {
  std::vector<std::string> names;
  int id = -1, kernel = -1, block = -1, grid = -1;

  int Find(std::string_view name) const {
    const auto at = std::find(names.begin(), names.end(), name);
    return at == names.end() ? -1 : static_cast<int>(at - names.begin());
  }
};

// A profiled program's own lines may stand before the header.
absl::StatusOr<Header> ReadHeader(CsvRows* rows) {
  Cells cells;
  if (!rows->SkipTo("\"ID\",") || !rows->Next(&cells)) {
    return NoKernels(*rows,
                     "no header that begins with \"ID\": not the output of `ncu --csv`, or nothing was profiled");
  }
  Header header{.names = std::vector<std::string>(cells.begin(), cells.end())};
  const std::pair<int*, const char*> needed[] = {
      {&header.id, "ID"}, {&header.kernel, "Kernel Name"}, {&header.block, "Block Size"}, {&header.grid, "Grid Size"}};
  for (const auto& [column, name] : needed) {
    *column = header.Find(name);
    if (*column >= 0) continue;
    return Bad(rows->line(), absl::StrCat("no column \"", name, "\": the file is cut short, or not ncu's"));
  }
  return header;
}

absl::StatusOr<int> ReadId(std::string_view cell, int line) {
  const std::optional<double> id = ParseNumber(cell);
  if (!id || *id < 0 || *id > 1e9 || *id != std::floor(*id)) {
    return Bad(line, absl::StrCat("the kernel ID \"", std::string(cell), "\" is not a whole number"));
  }
  return static_cast<int>(*id);
}

// Columns sorted by name, so that maps are filled from front to back.
std::vector<int> SortedColumns(const Header& header) {
  std::vector<int> order(header.names.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return header.names[a] < header.names[b]; });
  return order;
}

absl::StatusOr<NcuKernel> ReadKernel(const Header& header, const std::vector<int>& order,
                                     const std::vector<std::string>& units, const Cells& cells, int line) {
  const absl::StatusOr<int> id = ReadId(cells[header.id], line);
  if (!id.ok()) return id.status();
  NcuKernel kernel;
  kernel.id = *id;
  kernel.name = cells[header.kernel];
  kernel.block = cells[header.block];
  kernel.grid = cells[header.grid];
  for (const int column : order) {
    const std::string_view cell = cells[column];
    const std::string& name = header.names[column];
    if (!units[column].empty()) kernel.units.emplace_hint(kernel.units.end(), name, units[column]);
    if (const std::optional<double> value = ParseNumber(cell)) {
      kernel.values.emplace_hint(kernel.values.end(), name, *value);
    } else if (IsMissing(cell)) {
      continue;
    } else if (units[column].empty()) {
      kernel.texts.emplace_hint(kernel.texts.end(), name, cell);
    } else {
      return Bad(
          line, absl::StrCat("column ", name, ": \"", std::string(cell), "\" is not a number (run ncu with LC_ALL=C)"));
    }
  }
  return kernel;
}

}  // namespace

absl::StatusOr<std::vector<NcuKernel>> ReadNcuRaw(std::string_view csv) {
  CsvRows rows(csv);
  absl::StatusOr<Header> header = ReadHeader(&rows);
  if (!header.ok()) return header.status();
  const std::vector<int> order = SortedColumns(*header);
  std::vector<std::string> units;
  std::vector<NcuKernel> kernels;
  for (Cells cells; rows.Next(&cells);) {
    if (cells.size() != header->names.size()) {
      return Bad(rows.line(), absl::StrCat(cells.size(), " columns where the header has ", header->names.size(),
                                           ": the file is cut short or mixed with other output"));
    }
    if (units.empty()) {
      units.assign(cells.begin(), cells.end());
      if (!units[header->id].empty())
        return Bad(rows.line(), "a row of units is expected after the header: not ncu's raw page");
      for (size_t i = 0; i < units.size(); ++i) {
        if (IsBaseUnit(units[i])) continue;
        return Bad(rows.line(), absl::StrCat("column ", header->names[i], " has the unit \"", units[i],
                                             "\", which is not known: run ncu with --print-units base"));
      }
      continue;
    }
    absl::StatusOr<NcuKernel> kernel = ReadKernel(*header, order, units, cells, rows.line());
    if (!kernel.ok()) return kernel.status();
    kernels.push_back(*std::move(kernel));
  }
  if (kernels.empty() || !rows.status().ok()) return NoKernels(rows, "no row for any kernel");
  return kernels;
}

absl::StatusOr<std::map<int, std::vector<v1::Advice>>> ReadNcuDetails(std::string_view csv) {
  CsvRows rows(csv);
  absl::StatusOr<Header> header = ReadHeader(&rows);
  if (!header.ok()) return header.status();
  const int rule = header->Find("Rule Name"), type = header->Find("Rule Type"), text = header->Find("Rule Description"),
            scope = header->Find("Estimated Speedup Type"), speedup = header->Find("Estimated Speedup");
  if (std::min({rule, type, text, scope, speedup}) < 0) {
    return Bad(rows.line(), "no columns of rules: not ncu's details page, or made without rules");
  }
  std::map<int, std::vector<v1::Advice>> advice;
  for (Cells cells; rows.Next(&cells);) {
    // A row about a metric ends with one empty cell where the rule's columns begin.
    const bool metric = static_cast<int>(cells.size()) == rule + 1 && cells.back().empty();
    if (!metric && cells.size() != header->names.size()) {
      return Bad(rows.line(), absl::StrCat(cells.size(), " columns where the header has ", header->names.size(),
                                           ": the file is cut short or mixed with other output"));
    }
    const absl::StatusOr<int> id = ReadId(cells[header->id], rows.line());
    if (!id.ok()) return id.status();
    std::vector<v1::Advice>& of_kernel = advice[*id];
    if (metric || cells[rule].empty() || cells[type] == "INF") continue;
    v1::Advice& one = of_kernel.emplace_back();
    one.set_rule(std::string(cells[rule]));
    one.set_text(std::string(cells[text]));
    if (IsMissing(cells[speedup])) continue;
    const std::optional<double> percent = ParseNumber(cells[speedup]);
    if (!percent)
      return Bad(rows.line(),
                 absl::StrCat("the estimated speedup \"", std::string(cells[speedup]), "\" is not a number"));
    one.set_estimated_speedup_percent(*percent);
    one.set_estimate_scope(std::string(cells[scope]));
  }
  if (advice.empty() || !rows.status().ok()) return NoKernels(rows, "no row for any kernel");
  return advice;
}

v1::GpuInfo GpuOf(const NcuKernel& kernel) {
  const auto value = [&](const char* attribute) -> double {
    const auto at = kernel.values.find(absl::StrCat("device__attribute_", attribute));
    return at == kernel.values.end() ? 0 : at->second;
  };
  v1::GpuInfo gpu;
  const auto name = kernel.texts.find("device__attribute_display_name");
  if (name != kernel.texts.end()) gpu.set_name(name->second);
  gpu.set_compute_major(value("compute_capability_major"));
  gpu.set_compute_minor(value("compute_capability_minor"));
  gpu.set_sm_count(value("multiprocessor_count"));
  gpu.set_max_threads_per_sm(value("max_threads_per_multiprocessor"));
  gpu.set_max_threads_per_block(value("max_threads_per_block"));
  gpu.set_max_blocks_per_sm(value("max_blocks_per_multiprocessor"));
  gpu.set_registers_per_sm(value("max_registers_per_multiprocessor"));
  gpu.set_shared_per_sm(value("max_shared_memory_per_multiprocessor"));
  gpu.set_shared_per_block_optin(value("max_shared_memory_per_block_optin"));
  gpu.set_l2_bytes(value("l2_cache_size"));
  gpu.set_memory_bytes(value("total_memory"));
  gpu.set_max_sm_clock_mhz(value("max_gpu_frequency_khz") / 1000);
  gpu.set_max_memory_clock_mhz(value("max_mem_frequency_khz") / 1000);
  return gpu;
}

}  // namespace pawl
