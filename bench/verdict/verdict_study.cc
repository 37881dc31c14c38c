// pawl-verdict-study: how much the results of fresh processes differ on this machine's GPU, whether a kernel is ever
// kept over a copy of itself, how often a gain is kept, and whether a variant that is slower as a parent is found.
//   pawl-verdict-study --output FILE BUNDLE...         random single changes, each compared in several processes
//   pawl-verdict-study --same --output FILE BUNDLE...  variants against copies of them whose code is placed differently
//   pawl-verdict-study --gain 3 --output FILE BUNDLE... variants against copies of them that take 3 % longer
//   pawl-verdict-study --seats --output FILE BUNDLE... variants as candidates, as parents, and as parents that wait
//   pawl-verdict-study --report --output FILE          what FILE shows: noise, coverage, rates of seats; needs no GPU
// FILE gets a JSON line a process (tests/profiles/recorded_series.h); what is in it already is not measured again.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "bench/verdict/series_report.h"
#include "bench/verdict/study.h"

namespace pawl {
namespace {

constexpr int kStudyBuilders = 16;

void Report(const std::string& file, const std::string& gpu) {
  const std::vector<SeriesLine> lines = ReadSeries(file);
  PrintNoise(lines);
  PrintCoverage(lines, gpu);
  PrintSeatRates(lines, gpu);
}

int Main(int argc, char** argv) {
  StudyOptions options;
  bool same = false, seats = false, report = false;
  int ahead = 12;
  double gain = 0;
  std::string gpu = "NVIDIA H200";
  CLI::App app("Measures how much fresh processes differ on this machine's GPU");
  app.add_option("bundles", options.bundles, "Folders of bundles");
  app.add_option("--output", options.output, "File that gets a JSON line a process")->required();
  app.add_flag("--same", same, "Compare variants with copies of themselves, by the whole protocol");
  app.add_option("--gain", gain,
                 "Compare variants with copies that take so many percent longer, by the whole protocol");
  app.add_flag("--seats", seats, "Time variants as candidates, as parents, and as parents that wait");
  app.add_flag("--report", report, "Print noise, coverage and rates that the file shows");
  app.add_option("--gpu", gpu, "GPU whose noise is assumed in the report");
  app.add_option("--size", options.size, "Size that is timed where a bundle has it; the goal's otherwise");
  app.add_option("--pairs", options.pairs, "Pairs of variants, a bundle");
  app.add_option("--processes", options.processes, "Fresh processes, a pair");
  app.add_option("--series", options.series, "Blocks, a process");
  app.add_option("--ahead", ahead, "Processes that are started together");
  app.add_option("--seconds", options.seconds, "Time limit");
  app.add_option("--seed", options.seed, "Which pairs are drawn");
  CLI11_PARSE(app, argc, argv);
  options.gain = gain / 100;
  if (report) {
    Report(options.output, gpu);
    return 0;
  }
  absl::StatusOr<std::unique_ptr<CudaDevice>> cuda = CudaDevice::Open({.builders = kStudyBuilders});
  if (!cuda.ok()) {
    fprintf(stderr, "%s\n", std::string(cuda.status().message()).c_str());
    return 1;
  }
  printf("%s, driver %s\n", (*cuda)->gpu().name().c_str(), (*cuda)->gpu().driver_version().c_str());
  StudyDevice device(**cuda, ahead);
  Study study(device, options);
  if (same) {
    study.CompareCopies();
  } else if (options.gain > 0) {
    study.CompareSlowed();
  } else if (seats) {
    study.CompareSeats();
  } else {
    study.CompareChanges();
  }
  Report(options.output, device.gpu().name());
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) { return pawl::Main(argc, argv); }
