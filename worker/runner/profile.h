#pragma once

#include "absl/status/status.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/driver/range_profiler.h"
#include "worker/runner/gpu_context.h"

namespace pawl {

// Measures each launch of the job's items; one that is repeated once only. Before each pass an item is called
// unmeasured, so that the caches hold what they hold between calls in a row. Where counters can't be had, the reply
// says why.
absl::Status Profile(GpuContext& gpu, RangeProfiler& profiler, const v1::ProfileRequest& request,
                     v1::RunnerReply* reply);

}  // namespace pawl
