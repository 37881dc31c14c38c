#include "worker/device/cuda_device.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/plan.h"
#include "worker/device/baseline.h"
#include "worker/device/hand_off_check.h"
#include "worker/device/sanitizer.h"
#include "worker/embedded.h"
#include "worker/host/toolkit.h"
#include "worker/process/spawn.h"

namespace pawl {
namespace {

// Changes when the compilers do.
std::string CompilersText(const Builder& builder, const Toolkit& toolkit) {
  std::string text = builder.description();
  for (const std::string& path : {toolkit.nvrtc, toolkit.nvcc, toolkit.include}) {
    std::error_code error;
    const auto changed = std::filesystem::last_write_time(path, error);
    absl::StrAppend(&text, "\n", path, " ", error ? 0 : changed.time_since_epoch().count());
  }
  return text;
}

absl::StatusOr<std::string> BuildSupport(Compiler& builder, const std::string& architecture) {
  v1::BuildRequest request;
  request.set_compiler(v1::COMPILER_NVRTC);
  request.set_source(std::string(embedded::kRunnerFillsH) + std::string(embedded::kRunnerSupportCu));
  request.set_name("support.cu");
  request.set_architecture(architecture);
  request.add_entries("pawl_fill");
  request.set_deadline_seconds(60);
  absl::StatusOr<v1::BuildReply> reply = builder.Build(request);
  if (!reply.ok()) {
    request.set_compiler(v1::COMPILER_NVCC);  // a machine with nvcc alone
    if (absl::StatusOr<v1::BuildReply> other = builder.Build(request); other.ok()) reply = std::move(other);
  }
  if (!reply.ok()) return reply.status();
  if (reply->has_failure()) {
    return absl::InternalError(absl::StrCat("Pawl's own kernels do not build: ", reply->failure().message()));
  }
  return reply->cubin();
}

absl::StatusOr<std::vector<v1::BaselineTime>> TimeProblemBaseline(ProblemServer& problem, const v1::Bundle& bundle,
                                                                  const v1::GpuInfo& gpu) {
  std::vector<v1::BaselineTime> times;
  for (const v1::Size& size : bundle.sizes()) {
    absl::StatusOr<v1::Plan> plan = MakeReferencePlan(bundle, size, gpu);
    if (!plan.ok()) return plan.status();
    absl::StatusOr<v1::BaselineTime> time = problem.TimeBaseline(bundle, *plan);
    if (!time.ok()) return time.status();
    times.push_back(*std::move(time));
  }
  return times;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(const Options& options, const Metrics& metrics) {
  auto device = std::unique_ptr<CudaDevice>(new CudaDevice(options, metrics));
  device->toolkit_ = FindToolkit();
  for (const auto& [name, folder] : options.libraries) device->toolkit_.libraries[name] = folder;
  absl::StatusOr<std::string> program = FindPawlProgram("pawl-runner");
  if (!program.ok()) return program.status();
  device->runner_program_ = *program;
  device->shared_ = Fd(memfd_create("pawl-outputs", MFD_CLOEXEC));
  if (!device->shared_.valid()) return absl::InternalError(absl::StrCat("memfd_create: ", strerror(errno)));

  // The architecture to build for is the GPU's, so the runner opens the GPU before Pawl's own kernels are built.
  absl::StatusOr<Sandboxing> sandboxing =
      Sandboxing::Make(device->toolkit_, device->runner_program_, options.allow_unsandboxed);
  if (!sandboxing.ok()) return sandboxing.status();
  device->sandboxing_ = *std::move(sandboxing);
  const RunnerProcess::Options runner = {.program = device->runner_program_,
                                         .device = options.device,
                                         .shared_fd = device->shared_.get(),
                                         .support_cubin = "",
                                         .sandboxing = &device->sandboxing_};
  device->runner_ = std::make_unique<RunnerProcess>(runner);
  device->reference_ = std::make_unique<RunnerProcess>(runner);
  if (absl::Status open = device->runner_->Open(); !open.ok()) return open;
  device->gpu_ = device->runner_->gpu();
  ProblemProcess::Options problem;
  problem.shared_fd = device->shared_.get();
  problem.gpu_uuid = device->gpu_.uuid();
  problem.sandboxing = &device->sandboxing_;
  device->problem_ = std::make_unique<ProblemProcess>(problem);
  if (options.warm_python) device->problem_->Warm();

  BuilderOptions builder;
  builder.processes = options.builders;
  builder.allow_unsandboxed = options.allow_unsandboxed;
  builder.toolkit = device->toolkit_;
  absl::StatusOr<std::unique_ptr<Builder>> created = Builder::Create(builder);
  if (!created.ok()) return created.status();
  device->builder_ = *std::move(created);
  BuildCacheOptions cache = {.folder = options.build_cache,
                             .toolchain = CompilersText(*device->builder_, device->toolkit_)};
  for (const auto& [name, folder] : device->toolkit_.libraries) cache.uncached.insert(name);
  device->cached_ = std::make_unique<CachedCompiler>(*device->builder_, std::move(cache));
  absl::StatusOr<std::string> support = BuildSupport(*device->cached_, ArchitectureOf(device->gpu_));
  if (!support.ok()) return support.status();
  device->support_cubin_ = *std::move(support);
  for (RunnerProcess* process : {device->runner_.get(), device->reference_.get()}) {
    if (absl::Status set = process->SetSupportCubin(device->support_cubin_); !set.ok()) return set;
  }
  device->cupti_ = std::make_unique<CuptiProfiler>(*device, metrics);
  device->profiler_ = std::make_unique<FastestProfiler>(*device->cupti_, device->ncu_);
  return device;
}

void CudaDevice::StopWhen(const Stopped& stopped) {
  stopped_ = stopped;
  runner_->StopWhen(stopped);
  reference_->StopWhen(stopped);
  problem_->StopWhen(stopped);
  cupti_->StopWhen(stopped);
}

v1::Toolchain CudaDevice::toolchain() const { return ToolVersions(toolkit_); }

absl::StatusOr<std::unique_ptr<SanitizerRun>> CudaDevice::StartSanitizing(const std::vector<const BuiltSize*>& sizes,
                                                                          SanitizerTools tools) {
  return pawl::StartSanitizing(*this, sizes, tools);
}

absl::StatusOr<std::vector<v1::BaselineTime>> CudaDevice::TimeBaseline(const v1::Bundle& bundle,
                                                                       const std::filesystem::path& folder) {
  Settle();
  if (HasProblem(bundle) && bundle.baseline_command().empty()) return TimeProblemBaseline(*problem_, bundle, gpu_);
  const BaselineHost host = {gpu_, sandboxing_, stopped_, problem_.get()};
  if (folder.empty()) return RunBaseline(bundle, host);
  return RunBaseline(bundle, folder, {bundle.sizes().begin(), bundle.sizes().end()}, host);
}

absl::StatusOr<v1::BesideBaseline> CudaDevice::TimeBesideBaseline(const v1::Bundle& bundle, const BuiltSize& best) {
  Settle();
  if (HasProblem(bundle) && bundle.baseline_command().empty()) return problem_->TimeBesideBaseline(bundle, best);
  return RunBaselineBeside(bundle, best, {gpu_, sandboxing_, stopped_, problem_.get()});
}

absl::StatusOr<std::vector<v1::HandOffCheck>> CudaDevice::CheckHandOff(
    const v1::Bundle& bundle, const google::protobuf::RepeatedPtrField<v1::SourceFile>& files) {
  return pawl::CheckHandOff(bundle, files,
                            {.gpu = gpu_, .toolkit = toolkit_, .sandboxing = sandboxing_, .stopped = stopped_});
}

}  // namespace pawl
