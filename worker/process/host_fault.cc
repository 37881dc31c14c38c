#include "worker/process/host_fault.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "base/names/utf8.h"

namespace pawl {
namespace {

constexpr char kGpuPayload[] = "pawl/gpu-fault";

// Results of the driver (cuda.h) that a healthy GPU does not give once it has been opened: device unavailable, no
// device, invalid device, uncorrectable ECC error, uncorrectable NVLink error, unknown (what a lost GPU answers).
constexpr int kGpuErrors[] = {46, 100, 101, 214, 220, 999};

// The number of "CUDA_ERROR_ECC_UNCORRECTABLE (214): ..."; 0: there is none.
int CudaError(absl::string_view text) {
  const size_t name = text.find("CUDA_ERROR_");
  if (name == absl::string_view::npos) return 0;
  const size_t open = text.find('(', name), close = text.find(')', name);
  int number = 0;
  if (open > close || close == absl::string_view::npos) return 0;
  return absl::SimpleAtoi(text.substr(open + 1, close - open - 1), &number) ? number : 0;
}

}  // namespace

absl::Status RunnerFault(const std::string& host_error) {
  absl::Status status = absl::InternalError(host_error);
  const int error = CudaError(host_error);
  if (std::find(std::begin(kGpuErrors), std::end(kGpuErrors), error) != std::end(kGpuErrors)) {
    status.SetPayload(kGpuPayload, absl::Cord());
  }
  return status;
}

bool BlamesGpu(const absl::Status& status) { return status.GetPayload(kGpuPayload).has_value(); }

v1::HostFault HostFaultOf(const absl::Status& status) {
  v1::HostFault fault;
  fault.set_message(ValidUtf8(std::string_view(status.message().data(), status.message().size())));
  fault.set_gpu(BlamesGpu(status));
  return fault;
}

}  // namespace pawl
