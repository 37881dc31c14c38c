#include "worker/runner/profile.h"

#include <map>
#include <string>
#include <vector>

#include "worker/runner/job.h"

namespace pawl {
namespace {

absl::Status ProfileItemOf(GpuContext& gpu, RangeProfiler& profiler, const v1::Job::Item& item,
                           const std::vector<std::string>& metrics, v1::ProfileReply* reply) {
  JobItem loaded(gpu, item);
  PAWL_RETURN_IF_ERROR(loaded.Load());
  const auto prepare = [&]() -> absl::Status {
    PAWL_RETURN_IF_ERROR(loaded.Fill(0));
    PAWL_RETURN_IF_ERROR(loaded.Call());
    // What is changed in place must be as at a call's beginning; nothing else needs to be filled again.
    for (const v1::PlanTensor& tensor : loaded.plan().tensors()) {
      if (tensor.role() == v1::TENSOR_ROLE_INOUT) return loaded.Fill(0);
    }
    return absl::OkStatus();
  };
  absl::StatusOr<RangeProfiler::Counters> counters = profiler.Measure(
      metrics, static_cast<size_t>(loaded.plan().launches_size()), prepare, [&] { return loaded.CallOnceEach(); });
  if (!counters.ok()) return counters.status();
  for (const std::map<std::string, double>& launch : counters->launches) {
    reply->add_launches()->mutable_values()->insert(launch.begin(), launch.end());
  }
  reply->mutable_missing()->Assign(counters->missing.begin(), counters->missing.end());
  return absl::OkStatus();
}

}  // namespace

absl::Status Profile(GpuContext& gpu, RangeProfiler& profiler, const v1::ProfileRequest& request,
                     v1::RunnerReply* reply) {
  absl::StatusOr<v1::Job> job = ReadJob(request.job());
  if (!job.ok()) return job.status();
  const std::vector<std::string> metrics(request.metrics().begin(), request.metrics().end());
  absl::Status status = profiler.Open(request.cupti(), gpu.ordinal);
  for (const v1::Job::Item& item : job->items()) {
    if (status.ok()) status = ProfileItemOf(gpu, profiler, item, metrics, reply->mutable_profile());
  }
  if (absl::IsUnavailable(status)) {
    reply->mutable_profile()->set_unavailable(std::string(status.message()));
    return absl::OkStatus();
  }
  return status;
}

}  // namespace pawl
