#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "worker/build/builder.h"
#include "worker/build/nvrtc.h"
#include "worker/host/toolkit.h"
#include "worker/sandbox/sandboxing.h"

namespace pawl {
namespace {

constexpr double kDeadlineSeconds = 20;

v1::BuildRequest TinyKernel(const std::string& first_line, const DriverSeen& driver) {
  v1::BuildRequest request;
  request.set_compiler(v1::COMPILER_NVRTC);
  request.set_name("doctor.cu");
  request.set_source(
      absl::StrCat(first_line, "extern \"C\" __global__ void doctor(float* out) { out[threadIdx.x] = 1; }\n"));
  request.set_architecture("sm_80");
  if (!driver.gpus.empty()) {
    const GpuSeen& gpu = driver.gpus.front();
    request.set_architecture(absl::StrCat("sm_", gpu.compute_major, gpu.compute_minor));
  }
  request.add_entries("doctor");
  request.set_deadline_seconds(kDeadlineSeconds);
  return request;
}

void TryBuilds(const DriverSeen& driver, BuildsSeen* seen) {
  BuilderOptions options;
  absl::StatusOr<std::unique_ptr<Builder>> builder = Builder::Create(options);
  if (builder.status().code() == absl::StatusCode::kFailedPrecondition) {
    seen->sandbox = builder.status();
    options.allow_unsandboxed = true;
    builder = Builder::Create(options);
  }
  if (!builder.ok()) {
    seen->build = seen->theft = builder.status();
    return;
  }
  seen->build = (*builder)->Build(TinyKernel("", driver));
  seen->theft = (*builder)->Build(TinyKernel("#include \"/etc/passwd\"\n", driver));
}

}  // namespace

BuildsSeen ProbeBuilds(const DriverSeen& driver) {
  BuildsSeen seen;
  const Toolkit toolkit = FindToolkit();
  if (!toolkit.nvrtc.empty()) {
    if (const auto nvrtc = Nvrtc::Load(toolkit.nvrtc); nvrtc.ok()) seen.nvrtc_version = (*nvrtc)->version();
  }
  TryBuilds(driver, &seen);
  seen.run_sandbox = Sandboxing::Make(toolkit, "", /*allow_unsandboxed=*/false).status();
  return seen;
}

}  // namespace pawl
