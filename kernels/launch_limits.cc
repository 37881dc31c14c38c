// CheckLaunchLimits, declared in plan.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/limits.h"
#include "kernels/plan.h"

namespace pawl {
namespace {

std::string Extent(const v1::Dim3& dim) { return absl::StrCat(dim.x(), " x ", dim.y(), " x ", dim.z()); }

constexpr int kFirstWithClusters = 9;  // compute capability

std::string ClusterProblem(const v1::PlanLaunch& launch, const v1::GpuInfo& gpu, const std::string& on) {
  if (!launch.has_cluster()) return "";
  const v1::Dim3& cluster = launch.cluster();
  const v1::Dim3& grid = launch.grid();
  if (gpu.compute_major() > 0 && gpu.compute_major() < kFirstWithClusters) {
    return absl::StrCat(on, " has no thread block clusters: they need compute capability 9.0");
  }
  if (double(cluster.x()) * cluster.y() * cluster.z() > kMaxCluster) {
    return absl::StrCat("a cluster of ", Extent(cluster), " blocks; at most ", kMaxCluster, " are allowed");
  }
  if (grid.x() % cluster.x() != 0 || grid.y() % cluster.y() != 0 || grid.z() % cluster.z() != 0) {
    return absl::StrCat("the grid of ", Extent(grid), " blocks is not a multiple of the cluster of ", Extent(cluster));
  }
  return "";
}

// Blocks that can be on the GPU at once, by what is known before compiling; -1: nothing is.
int64_t ResidentBlocks(const v1::PlanLaunch& launch, const v1::GpuInfo& gpu) {
  const double threads = double(launch.block().x()) * launch.block().y() * launch.block().z();
  if (gpu.sm_count() <= 0 || gpu.max_threads_per_sm() <= 0 || threads < 1) return -1;
  // Threads are given out by warps.
  const double warps = std::ceil(threads / 32);
  int64_t each = static_cast<int64_t>(gpu.max_threads_per_sm() / 32 / warps);
  if (gpu.max_blocks_per_sm() > 0) each = std::min<int64_t>(each, gpu.max_blocks_per_sm());
  if (gpu.shared_per_sm() > 0 && launch.shared_bytes() > 0) {
    each = std::min<int64_t>(each, gpu.shared_per_sm() / launch.shared_bytes());
  }
  return each * gpu.sm_count();
}

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
  std::vector<const v1::PlanLaunch*> launches;
  for (const auto* list : {&plan.setup(), &plan.launches()}) {
    for (const v1::PlanLaunch& launch : *list) launches.push_back(&launch);
  }
  for (const v1::PlanLaunch* each : launches) {
    const v1::PlanLaunch& launch = *each;
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
    if (const std::string problem = ClusterProblem(launch, gpu, on); !problem.empty()) {
      return failure(v1::CHECK_LAUNCH_LIMITS, absl::StrCat("launch ", launch.entry(), ": ", problem));
    }
    const double blocks = double(grid.x()) * grid.y() * grid.z();
    const int64_t resident = ResidentBlocks(launch, gpu);
    if (launch.cooperative() && resident >= 0 && blocks > static_cast<double>(resident)) {
      return failure(v1::CHECK_LAUNCH_LIMITS,
                     absl::StrCat("launch ", launch.entry(), ": a cooperative grid of ", Extent(grid), " = ", blocks,
                                  " blocks; at most ", resident, " fit on ", on, " at once"));
    }
  }
  double bytes = 0;
  for (const v1::PlanTensor& tensor : plan.tensors()) bytes += static_cast<double>(TensorBytes(tensor));
  if (gpu.memory_bytes() > 0 && bytes > static_cast<double>(gpu.memory_bytes())) {
    return failure(v1::CHECK_OUT_OF_MEMORY, absl::StrCat("the tensors take ", static_cast<int64_t>(bytes / (1 << 20)),
                                                         " MiB; ", on, " has ", gpu.memory_bytes() >> 20, " MiB"));
  }
  return std::nullopt;
}

}  // namespace pawl
