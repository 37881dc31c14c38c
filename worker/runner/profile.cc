#include "worker/runner/profile.h"

#include <algorithm>

#include "worker/runner/arena.h"
#include "worker/runner/tensor_bytes.h"

namespace pawl {
namespace {

// Launches that are repeated are measured once: the first stands for all.
v1::Plan OnceEach(v1::Plan plan) {
  for (v1::PlanLaunch& launch : *plan.mutable_launches()) launch.clear_repeat();
  return plan;
}

// Every tensor in an allocation of its own, filled.
class Buffers {
 public:
  ~Buffers() {
    for (const CUdeviceptr address : addresses_) Cuda().MemFree(address);
  }
  absl::Status Allocate(const v1::Plan& plan) {
    for (const v1::PlanTensor& tensor : plan.tensors()) {
      CUdeviceptr address = 0;
      PAWL_CUDA(MemAlloc(&address, std::max<int64_t>(1, TensorBytes(tensor))));
      addresses_.push_back(address);
    }
    return absl::OkStatus();
  }
  const std::vector<CUdeviceptr>& addresses() const { return addresses_; }

 private:
  std::vector<CUdeviceptr> addresses_;
};

}  // namespace

absl::Status Profile(GpuContext& gpu, RangeProfiler& profiler, const v1::ProfileRequest& request,
                     v1::RunnerReply* reply) {
  v1::ProfileReply* const answer = reply->mutable_profile();
  absl::StatusOr<Module*> module = gpu.FindModule(request.module());
  if (!module.ok()) return module.status();
  const v1::Plan plan = OnceEach(request.plan());
  if (const absl::Status opened = profiler.Open(request.cupti(), gpu.ordinal); !opened.ok()) {
    answer->set_unavailable(std::string(opened.message()));
    return absl::OkStatus();
  }
  Buffers buffers;
  PAWL_RETURN_IF_ERROR(buffers.Allocate(plan));
  const Arena arena = Arena::At(plan, plan, buffers.addresses());
  SegmentTable table;
  PAWL_RETURN_IF_ERROR(table.Set(arena.Inputs(0, 0)));
  const Key key = RandomKey();
  const auto call = [&] { return (*module)->Call(plan, buffers.addresses(), gpu.stream); };
  const auto prepare = [&]() -> absl::Status {
    PAWL_RETURN_IF_ERROR(gpu.support.Fill(table, key));
    return call();
  };
  const std::vector<std::string> metrics(request.metrics().begin(), request.metrics().end());
  absl::StatusOr<RangeProfiler::Counters> counters =
      profiler.Measure(metrics, static_cast<size_t>(plan.launches_size()), prepare, call);
  if (absl::IsUnavailable(counters.status())) {
    answer->set_unavailable(std::string(counters.status().message()));
    return absl::OkStatus();
  }
  if (!counters.ok()) return counters.status();
  for (const std::map<std::string, double>& launch : counters->launches) {
    answer->add_launches()->mutable_values()->insert(launch.begin(), launch.end());
  }
  answer->mutable_missing()->Add(counters->missing.begin(), counters->missing.end());
  return absl::OkStatus();
}

}  // namespace pawl
