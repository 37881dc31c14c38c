#pragma once

#include "pawl/v1/runner.pb.h"
#include "worker/runner/driver/range_profiler.h"
#include "worker/runner/gpu_context.h"

namespace pawl {

// Answers requests. Driver errors become the reply's failure (the candidate's fault) or host_error (the machine's);
// after a sticky error the reply says context_lost and the process has to end.
class Runner {
 public:
  explicit Runner(int shared_fd) : gpu_(shared_fd) {}
  v1::RunnerReply Answer(const v1::RunnerRequest& request);

 private:
  absl::Status Dispatch(const v1::RunnerRequest& request, v1::RunnerReply* reply);

  GpuContext gpu_;
  RangeProfiler profiler_;
};

// What a request that ended with this status is answered.
v1::RunnerReply FailedReply(const absl::Status& status, const v1::RunnerRequest& request);

}  // namespace pawl
