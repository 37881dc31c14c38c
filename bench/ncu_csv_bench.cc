// Reading ncu's CSV and what follows from it. Run from the checkout's root, or with PAWL_SOURCE_DIR set.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "profiles/diagnosis.h"
#include "profiles/metrics.h"
#include "profiles/ncu/ncu_csv.h"

namespace pawl {
namespace {

std::string Golden(const std::string& file) {
  const char* root = std::getenv("PAWL_SOURCE_DIR");
  std::ifstream in(std::string(root ? root : ".") + "/tests/profiles/golden/ncu-h200/" + file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

void ReadRaw(benchmark::State& state, const char* file) {
  const std::string csv = Golden(file);
  for (auto _ : state) {
    auto kernels = ReadNcuRaw(csv);
    if (!kernels.ok()) state.SkipWithError(kernels.status().ToString().c_str());
    benchmark::DoNotOptimize(kernels);
  }
  state.SetBytesProcessed(state.iterations() * csv.size());
}
BENCHMARK_CAPTURE(ReadRaw, full, "zoo_raw_full.csv")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ReadRaw, small, "zoo_raw_small.csv")->Unit(benchmark::kMillisecond);

void ReadDetails(benchmark::State& state) {
  const std::string csv = Golden("zoo_details_full.csv");
  for (auto _ : state) benchmark::DoNotOptimize(ReadNcuDetails(csv));
}
BENCHMARK(ReadDetails)->Unit(benchmark::kMillisecond);

// One launch: counters into metrics into findings.
void DeriveAndDiagnose(benchmark::State& state) {
  const auto kernels = ReadNcuRaw(Golden("zoo_raw_full.csv"));
  if (!kernels.ok()) return state.SkipWithError(kernels.status().ToString().c_str());
  const v1::GpuInfo gpu = GpuOf(kernels->front());
  for (auto _ : state) {
    v1::Evidence evidence;
    const auto metrics = Metrics::Default().Derive(&kernels->front(), v1::LaunchEvidence(), gpu);
    evidence.add_launches()->mutable_metrics()->insert(metrics.begin(), metrics.end());
    benchmark::DoNotOptimize(DecisionTree::Default().Diagnose(evidence, gpu));
  }
}
BENCHMARK(DeriveAndDiagnose)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace pawl
