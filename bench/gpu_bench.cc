// pawl-gpu-bench cost: what a variant costs on this machine's GPU: build, validate, compare, in seconds by part.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "kernels/plan.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "worker/device/cuda_device.h"
#include "worker/record/recorder.h"
#include "worker/trial/timer.h"
#include "worker/validate/output_check.h"
#include "worker/validate/validator.h"

namespace pawl {
namespace {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
  exit(1);
}

v1::Bundle Read(const std::string& name) {
  const char* source = getenv("PAWL_SOURCE_DIR");
  BundleReading reading = ReadBundle(std::filesystem::path(source == nullptr ? "." : source) / "kernels" / name);
  for (const Problem& problem : reading.problems) fprintf(stderr, "%s\n", FormatProblem(problem).c_str());
  if (!reading.problems.empty()) exit(1);
  return reading.bundle;
}

// A variant that fails would make a figure look good.
void MustPass(const std::optional<v1::Failure>& failure) {
  if (!failure) return;
  fprintf(stderr, "%s: %s\n", v1::Check_Name(failure->check()).c_str(), failure->message().c_str());
  exit(1);
}

// One builder and one variant at a time: what a user waits for, without the next variants' builds running ahead.
void Cost(CudaDevice& device, const std::string& name, int variants) {
  const v1::Bundle bundle = Read(name);
  const std::vector<v1::Variant> sample = Must(ConnectedSample(bundle, variants + 1));
  const BuiltVariant start =
      Must(BuildVariant(device.builder(), bundle, sample[0], AllSizes(bundle).all, device.gpu()));
  MustPass(start.failure);
  MustPass(Must(Validate(device, bundle, start, {})).failure);
  const std::string& goal = bundle.goal().size();
  std::vector<double> total, build, validate, measure, gpu, overhead;
  for (size_t i = 1; i < sample.size(); ++i) {
    const double busy = device.runner().busy_seconds() + device.reference().busy_seconds();
    const absl::Time begin = absl::Now();
    const BuiltVariant built =
        Must(BuildVariant(device.builder(), bundle, sample[i], AllSizes(bundle).all, device.gpu()));
    MustPass(built.failure);
    const Validation validation = Must(Validate(device, bundle, built, {}));
    const Timing timing = Must(TimeAgainst(device, bundle, *built.Find(goal), *start.Find(goal), {}));
    MustPass(validation.failure);
    MustPass(timing.failure);
    const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
    const double processes = device.runner().busy_seconds() + device.reference().busy_seconds() - busy;
    total.push_back(seconds);
    build.push_back(built.seconds);
    validate.push_back(validation.seconds);
    measure.push_back(timing.seconds);
    gpu.push_back(processes);
    overhead.push_back(seconds - built.compile_seconds - processes);
  }
  printf("| %s | %zu | %.3f | %.3f | %.3f | %.3f | %.3f | %.3f (%.0f %%) |\n", name.c_str(), total.size(),
         Median(total), Median(build), Median(validate), Median(measure), Median(gpu), Median(overhead),
         100 * Median(overhead) / Median(total));
}

void BuildTimes(CudaDevice& device) {
  const v1::Bundle nvrtc = Read("attention");
  v1::Bundle nvcc = nvrtc;
  nvcc.set_compiler(v1::COMPILER_NVCC);
  const std::vector<v1::Variant> sample = Must(ConnectedSample(nvrtc, 30));
  const std::vector<v1::Size> size = {nvrtc.sizes(0)};
  auto time = [&](const v1::Bundle& bundle, size_t count) {
    std::vector<double> seconds;
    for (size_t i = 0; i < count && i < sample.size(); ++i) {
      seconds.push_back(Must(BuildVariant(device.builder(), bundle, sample[i], size, device.gpu())).seconds);
    }
    return Median(seconds);
  };
  time(nvrtc, 1);
  printf("NVRTC build of an attention variant, warm, median of 30: %.3f s\n", time(nvrtc, 30));
  if (!device.toolkit().nvcc.empty()) printf("nvcc -cubin of the same, median of 5: %.3f s\n", time(nvcc, 5));
}

int Main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what != "cost") {
    fprintf(stderr, "usage: pawl-gpu-bench cost\n");
    return 2;
  }
  const std::unique_ptr<CudaDevice> device = Must(CudaDevice::Open({.build_cache = ""}));
  printf("%s, driver %s\n", device->gpu().name().c_str(), device->gpu().driver_version().c_str());
  BuildTimes(*device);
  printf("\nSeconds a variant, median; build, validated on the ladder and hidden sizes, compared with its parent:\n\n");
  printf("| bundle | variants | total | build | validate | compare | of it in runner and reference | our overhead |\n");
  printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const char* name : {"transpose", "attention"}) Cost(*device, name, 20);
  return 0;
}

}  // namespace
}  // namespace pawl

int main(int argc, char** argv) { return pawl::Main(argc, argv); }
