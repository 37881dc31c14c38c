#include "worker/trial/cuda_device.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "worker/embedded.h"
#include "worker/process/programs.h"

namespace pawl {
namespace {

constexpr absl::Duration kCheckDeadline = absl::Seconds(60);

absl::StatusOr<std::string> BuildSupport(Builder& builder, const std::string& architecture) {
  v1::BuildRequest request;
  request.set_compiler(v1::COMPILER_NVRTC);
  request.set_source(std::string(embedded::kRunnerSupportCu));
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

}  // namespace

uint64_t SecretSeed() {
  uint64_t seed = 0;
  while (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
  }
  return seed;
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(const Options& options) {
  auto device = std::unique_ptr<CudaDevice>(new CudaDevice(options));
  device->toolkit_ = FindToolkit();
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

  BuilderOptions builder;
  builder.processes = options.builders;
  builder.allow_unsandboxed = options.allow_unsandboxed;
  builder.toolkit = device->toolkit_;
  absl::StatusOr<std::unique_ptr<Builder>> created = Builder::Create(builder);
  if (!created.ok()) return created.status();
  device->builder_ = *std::move(created);
  absl::StatusOr<std::string> support = BuildSupport(*device->builder_, ArchitectureOf(device->gpu_));
  if (!support.ok()) return support.status();
  device->support_cubin_ = *std::move(support);
  for (RunnerProcess* process : {device->runner_.get(), device->reference_.get()}) {
    if (absl::Status set = process->SetSupportCubin(device->support_cubin_); !set.ok()) return set;
  }
  return device;
}

void CudaDevice::StopWhen(const Stopped& stopped) {
  stopped_ = stopped;
  runner_->StopWhen(stopped);
  reference_->StopWhen(stopped);
}

absl::Status CudaDevice::BuildReferenceAhead(const v1::Bundle& bundle, const v1::Size& size, const Stopped& stopped) {
  return BuildReference(*builder_, bundle, size, gpu_, &references_, stopped).status();
}

absl::StatusOr<v1::CheckReply> CudaDevice::CheckOutputs(const v1::Bundle& bundle, const v1::Plan& plan,
                                                        const std::vector<uint64_t>& seeds, bool self_test) {
  v1::Size size;
  size.set_name(plan.size());
  *size.mutable_values() = plan.sizes();
  absl::StatusOr<BuiltSize> built = BuildReference(*builder_, bundle, size, gpu_, &references_, stopped_);
  if (!built.ok()) return built.status();
  const BuiltSize& reference = *built;
  auto fail = [&](const v1::Failure& failure) {
    const std::string message =
        absl::StrCat("the reference of ", bundle.name(), " failed at size ", plan.size(), ": ", failure.message());
    const bool memory = failure.check() == v1::CHECK_OUT_OF_MEMORY;
    return memory ? absl::ResourceExhaustedError(message) : absl::InvalidArgumentError(message);
  };
  absl::StatusOr<v1::RunnerReply> loaded =
      reference_->Load(reference.module, *reference.cubin, reference.plan.launches());
  if (!loaded.ok()) return loaded.status();
  if (loaded->has_failure()) return fail(loaded->failure());
  v1::RunnerRequest request;
  request.mutable_check()->set_module(reference.module);
  *request.mutable_check()->mutable_plan() = reference.plan;
  for (uint64_t seed : seeds) request.mutable_check()->add_seeds(seed);
  request.mutable_check()->set_self_test(self_test);
  absl::StatusOr<v1::RunnerReply> reply = reference_->Ask(request, kCheckDeadline);
  if (!reply.ok()) return reply.status();
  if (reply->has_failure()) return fail(reply->failure());
  // Nothing that was not compared may pass for right.
  size_t outputs = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) outputs += tensor.role() == v1::TENSOR_ROLE_OUTPUT;
  if (static_cast<size_t>(reply->check().errors_size()) != outputs * seeds.size() || outputs * seeds.size() == 0) {
    return absl::InternalError(
        absl::StrCat("the reference compared ", reply->check().errors_size(), " outputs of ", outputs * seeds.size()));
  }
  return reply->check();
}

}  // namespace pawl
