// The data files that people edit. The first byte of the input says which; the rest is the file. Rules that can be read
// are asked about evidence of a real kernel.
#include <string>

#include "fuzz/fuzz_target.h"
#include "profiles/diagnosis.h"
#include "profiles/gates.h"
#include "profiles/gpus.h"
#include "profiles/metrics.h"
#include "profiles/pattern_file.h"

namespace pawl {
namespace {

v1::Evidence SomeEvidence(const Metrics& metrics) {
  v1::Evidence evidence;
  v1::LaunchEvidence& launch = *evidence.add_launches();
  launch.set_entry("softmax");
  double value = 0.5;
  for (const Metric& metric : metrics.all()) (*launch.mutable_metrics())[metric.name] = value *= 1.5;
  return evidence;
}

void TryTree(std::string_view text, const Metrics& metrics) {
  const absl::StatusOr<DecisionTree> tree = DecisionTree::Parse(text, "decision_tree.toml", metrics);
  if (!tree.ok()) return;
  const v1::GpuInfo& gpu = FindGpu("h200")->info;
  (void)tree->Diagnose(SomeEvidence(metrics), gpu);
  (void)tree->Gaps(v1::Evidence(), gpu);
}

void Try(char kind, std::string_view text) {
  switch (kind) {
    case 'm':
      if (const absl::StatusOr<Metrics> metrics = Metrics::Parse(text, "metrics.toml"); metrics.ok()) {
        (void)metrics->NcuNames();
        (void)metrics->Derive(nullptr, SomeEvidence(*metrics).launches(0), FindGpu("h200")->info);
      }
      return;
    case 'g':
      if (const absl::StatusOr<Gates> gates = Gates::Parse(text, "gates.toml"); gates.ok()) {
        (void)gates->TierOf(1.3, 1.2);
        (void)gates->For(v1::CHECK_FAULT);
      }
      return;
    case 'u':
      return (void)ParseGpu(text, "fuzz");
    case 'p':
      if (const auto file = ParsePatternFile(text, "patterns.json"); file.ok()) (void)PatternFileText(*file);
      return;
    default:
      return TryTree(text, Metrics::Default());
  }
}

}  // namespace
}  // namespace pawl

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  pawl::Try(static_cast<char>(data[0]), std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  return 0;
}
