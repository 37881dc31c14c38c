// CheckLaunchLimits, declared in plan.h.
#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "kernels/limits.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

std::string Extent(const v1::Dim3& dim) { return absl::StrCat(dim.x(), " x ", dim.y(), " x ", dim.z()); }

}  // namespace

std::optional<v1::Failure> CheckLaunchLimits(const v1::Plan& plan, const v1::GpuInfo& gpu) {
  const auto failure = [&](v1::Check check, std::string message) {
    v1::Failure result;
    result.set_stage(v1::STAGE_STATIC_CHECK);
    result.set_check(check);
    result.set_size(plan.size());
    result.set_message(std::move(message));
    return result;
  };
  const std::string on = gpu.name().empty() ? "the GPU" : gpu.name();
  for (const v1::PlanLaunch& launch : plan.launches()) {
    const auto beyond = [&](const std::string& what, int64_t has, int64_t limit) {
      return failure(v1::CHECK_LAUNCH_LIMITS, absl::StrCat("launch ", launch.entry(), ": ", what, " ", has,
                                                           "; the limit of ", on, " is ", limit));
    };
    const v1::Dim3& block = launch.block();
    const v1::Dim3& grid = launch.grid();
    // In doubles: the product of three int32 can overflow an int64.
    const double threads = double(block.x()) * block.y() * block.z();
    if (gpu.max_threads_per_block() > 0 && threads > gpu.max_threads_per_block()) {
      return failure(v1::CHECK_LAUNCH_LIMITS,
                     absl::StrCat("launch ", launch.entry(), ": a block of ", Extent(block), " = ", threads,
                                  " threads; the limit of ", on, " is ", gpu.max_threads_per_block()));
    }
    if (block.x() > kMaxBlockXY) return beyond("block x", block.x(), kMaxBlockXY);
    if (block.y() > kMaxBlockXY) return beyond("block y", block.y(), kMaxBlockXY);
    if (block.z() > kMaxBlockZ) return beyond("block z", block.z(), kMaxBlockZ);
    if (grid.y() > kMaxGridYZ) return beyond("grid y", grid.y(), kMaxGridYZ);
    if (grid.z() > kMaxGridYZ) return beyond("grid z", grid.z(), kMaxGridYZ);
    if (gpu.shared_per_block_optin() > 0 && launch.shared_bytes() > gpu.shared_per_block_optin()) {
      return beyond("shared memory in bytes is", launch.shared_bytes(), gpu.shared_per_block_optin());
    }
  }
  double bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) bytes += double(TensorBytes(tensor));
  if (gpu.memory_bytes() > 0 && bytes > static_cast<double>(gpu.memory_bytes())) {
    return failure(v1::CHECK_OUT_OF_MEMORY, absl::StrCat("the tensors take ", static_cast<int64_t>(bytes / (1 << 20)),
                                                         " MiB; ", on, " has ", gpu.memory_bytes() >> 20, " MiB"));
  }
  return std::nullopt;
}

}  // namespace pawl
