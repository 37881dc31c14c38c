#include "worker/runner/driver/range_profiler.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace pawl {
namespace {

constexpr int kMaxPasses = 200;  // far more than any list of metrics takes

}  // namespace

// The size that CUPTI wants in front: up to the end of the last field.
#define PAWL_CUPTI_PARAMETERS(type, variable, last) \
  type variable = {};                               \
  variable.size = offsetof(type, last) + sizeof(variable.last)
#define PAWL_CUPTI(call) PAWL_RETURN_IF_ERROR(CuptiStatus(*cupti_, cupti_->call, #call))

absl::Status RangeProfiler::Open(const std::string& library, int device) {
  if (cupti_ != nullptr) return absl::OkStatus();
  absl::StatusOr<const Cupti*> cupti = LoadCupti(library);
  if (!cupti.ok()) return cupti.status();
  cupti_ = *cupti;
  const absl::Status opened = [&]() -> absl::Status {
    PAWL_CUDA(CtxGetCurrent(&context_));
    PAWL_CUPTI_PARAMETERS(CuptiInitialize, initialize, own);
    PAWL_CUPTI(ProfilerInitialize(&initialize));
    PAWL_CUPTI_PARAMETERS(CuptiChipName, chip, chip);
    chip.device = static_cast<size_t>(device);
    PAWL_CUPTI(DeviceGetChipName(&chip));
    chip_ = chip.chip;
    PAWL_CUPTI_PARAMETERS(CuptiAvailability, availability, image);
    availability.context = context_;
    PAWL_CUPTI(ProfilerGetCounterAvailability(&availability));
    availability_.resize(availability.image_bytes);
    availability.image = availability_.data();
    PAWL_CUPTI(ProfilerGetCounterAvailability(&availability));
    return absl::OkStatus();
  }();
  if (!opened.ok()) cupti_ = nullptr;
  return opened;
}

absl::StatusOr<void*> RangeProfiler::MakeHost() {
  PAWL_CUPTI_PARAMETERS(CuptiHostInitialize, initialize, host);
  initialize.chip = chip_.c_str();
  initialize.availability = availability_.data();
  PAWL_CUPTI(ProfilerHostInitialize(&initialize));
  return initialize.host;
}

absl::StatusOr<const RangeProfiler::Config*> RangeProfiler::ConfigFor(const std::vector<std::string>& metrics) {
  if (const auto known = configs_.find(metrics); known != configs_.end()) return &known->second;
  Config config;
  absl::StatusOr<void*> host = MakeHost();
  if (!host.ok()) return host.status();
  config.host = *host;
  for (const std::string& metric : metrics) {
    PAWL_CUPTI_PARAMETERS(CuptiMetricProperties, properties, type);
    properties.host = config.host;
    properties.metric = metric.c_str();
    const bool there = cupti_->ProfilerHostGetMetricProperties(&properties) == 0;
    (there ? config.metrics : config.missing).push_back(metric);
  }
  Config& kept = configs_[metrics] = std::move(config);
  for (const std::string& metric : kept.metrics) kept.names.push_back(metric.c_str());
  const absl::Status made = [&]() -> absl::Status {
    PAWL_CUPTI_PARAMETERS(CuptiAddMetrics, add, count);
    add.host = kept.host;
    add.metrics = kept.names.data();
    add.count = kept.names.size();
    PAWL_CUPTI(ProfilerHostConfigAddMetrics(&add));
    PAWL_CUPTI_PARAMETERS(CuptiConfigSize, size, bytes);
    size.host = kept.host;
    PAWL_CUPTI(ProfilerHostGetConfigImageSize(&size));
    kept.image.resize(size.bytes);
    PAWL_CUPTI_PARAMETERS(CuptiConfigImage, image, image);
    image.host = kept.host;
    image.bytes = kept.image.size();
    image.image = kept.image.data();
    PAWL_CUPTI(ProfilerHostGetConfigImage(&image));
    return absl::OkStatus();
  }();
  if (!made.ok()) {
    PAWL_CUPTI_PARAMETERS(CuptiHostDeinitialize, end, host);
    end.host = kept.host;
    cupti_->ProfilerHostDeinitialize(&end);
    configs_.erase(metrics);
    return made;
  }
  return &kept;
}

absl::Status RangeProfiler::Passes(void* profiler, const std::function<absl::Status()>& prepare,
                                   const std::function<absl::Status()>& launch) {
  for (int pass = 0; pass < kMaxPasses; ++pass) {
    PAWL_RETURN_IF_ERROR(prepare());
    PAWL_CUDA(CtxSynchronize());
    PAWL_CUPTI_PARAMETERS(CuptiOfProfiler, start, profiler);
    start.profiler = profiler;
    PAWL_CUPTI(RangeProfilerStart(&start));
    const absl::Status launched = launch();
    const CUresult finished = Cuda().CtxSynchronize();
    PAWL_CUPTI_PARAMETERS(CuptiStop, stop, all_passes);
    stop.profiler = profiler;
    const CUptiResult stopped = cupti_->RangeProfilerStop(&stop);
    PAWL_RETURN_IF_ERROR(launched);
    PAWL_RETURN_IF_ERROR(CudaStatus(finished, "CtxSynchronize"));
    PAWL_RETURN_IF_ERROR(CuptiStatus(*cupti_, stopped, "RangeProfilerStop"));
    if (stop.all_passes != 0) return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("CUPTI asks for more than ", kMaxPasses, " passes"));
}

absl::StatusOr<RangeProfiler::Counters> RangeProfiler::MeasureWith(void* profiler, const Config& config,
                                                                   size_t launches,
                                                                   const std::function<absl::Status()>& prepare,
                                                                   const std::function<absl::Status()>& launch) {
  // CUPTI takes names that it does not change as if it did.
  const char** const names = const_cast<const char**>(config.names.data());
  PAWL_CUPTI_PARAMETERS(CuptiDataSize, size, bytes);
  size.profiler = profiler;
  size.metrics = names;
  size.count = config.names.size();
  size.max_ranges = launches;
  size.max_nodes = static_cast<uint32_t>(launches);
  PAWL_CUPTI(RangeProfilerGetCounterDataSize(&size));
  std::vector<uint8_t> data(size.bytes);
  PAWL_CUPTI_PARAMETERS(CuptiDataInitialize, initialize, data);
  initialize.profiler = profiler;
  initialize.bytes = data.size();
  initialize.data = data.data();
  PAWL_CUPTI(RangeProfilerCounterDataImageInitialize(&initialize));
  PAWL_CUPTI_PARAMETERS(CuptiSetConfig, set, target_nesting_level);
  set.profiler = profiler;
  set.config_bytes = config.image.size();
  set.config = config.image.data();
  set.data_bytes = data.size();
  set.data = data.data();
  set.range = kCuptiAutoRange;
  set.replay = kCuptiUserReplay;
  set.max_ranges = launches;
  set.nesting_levels = set.min_nesting_level = set.target_nesting_level = 1;
  PAWL_CUPTI(RangeProfilerSetConfig(&set));
  PAWL_RETURN_IF_ERROR(Passes(profiler, prepare, launch));

  PAWL_CUPTI_PARAMETERS(CuptiDecode, decode, dropped);
  decode.profiler = profiler;
  PAWL_CUPTI(RangeProfilerDecodeData(&decode));
  PAWL_CUPTI_PARAMETERS(CuptiDataInfo, info, ranges);
  info.data = data.data();
  info.bytes = data.size();
  PAWL_CUPTI(RangeProfilerGetCounterDataInfo(&info));
  if (info.ranges != launches || decode.dropped != 0) {
    return absl::UnavailableError(absl::StrCat("CUPTI reported ", info.ranges, " launches, ", launches, " ran"));
  }
  Counters counters;
  counters.missing = config.missing;
  for (size_t range = 0; range < info.ranges; ++range) {
    std::vector<double> values(config.names.size());
    PAWL_CUPTI_PARAMETERS(CuptiEvaluate, evaluate, values);
    evaluate.host = config.host;
    evaluate.data = data.data();
    evaluate.data_bytes = data.size();
    evaluate.range = range;
    evaluate.metrics = names;
    evaluate.count = values.size();
    evaluate.values = values.data();
    PAWL_CUPTI(ProfilerHostEvaluateToGpuValues(&evaluate));
    std::map<std::string, double>& launch_values = counters.launches.emplace_back();
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) launch_values[config.metrics[i]] = values[i];
    }
  }
  return counters;
}

absl::StatusOr<RangeProfiler::Counters> RangeProfiler::Measure(const std::vector<std::string>& metrics, size_t launches,
                                                               const std::function<absl::Status()>& prepare,
                                                               const std::function<absl::Status()>& launch) {
  absl::StatusOr<const Config*> config = ConfigFor(metrics);
  if (!config.ok()) return config.status();
  PAWL_CUPTI_PARAMETERS(CuptiEnable, enable, profiler);
  enable.context = context_;
  PAWL_CUPTI(RangeProfilerEnable(&enable));
  absl::StatusOr<Counters> counters = MeasureWith(enable.profiler, **config, launches, prepare, launch);
  PAWL_CUPTI_PARAMETERS(CuptiOfProfiler, disable, profiler);
  disable.profiler = enable.profiler;
  cupti_->RangeProfilerDisable(&disable);
  return counters;
}

#undef PAWL_CUPTI
#undef PAWL_CUPTI_PARAMETERS

}  // namespace pawl
