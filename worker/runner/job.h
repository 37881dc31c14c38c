#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pawl/v1/runner.pb.h"
#include "worker/runner/gpu_context.h"
#include "worker/runner/placement.h"

namespace pawl {

// One item of a job: its tensors, each at the end of an allocation of its own, without guard bands or poison, and what
// its calls need beside them. Where the item is shifted, they move before each call: every other time to places drawn
// behind their allocations' beginnings, so that addresses do not tell a job from calls that are validated or timed.
class JobItem {
 public:
  // Both must outlive it.
  JobItem(GpuContext& gpu, const v1::Job::Item& item) : gpu_(gpu), item_(item), plan_(item.plan()) {}

  // Once, before the rest.
  absl::Status Load();
  // Fills the inputs, every other time with values at the ends of their range, and runs the setup launches.
  // `through_host`: by a kernel that writes to host memory, and a copy from there. compute-sanitizer then need not
  // watch that kernel, and knows all the same that the tensors are initialised.
  absl::Status Fill(int call, bool through_host = false);
  // Queues the launches.
  absl::Status Call(const Module::Around& around = nullptr);
  // The same, a launch that is repeated once only.
  absl::Status CallOnceEach();

  const v1::Plan& plan() const { return plan_; }

 private:
  absl::Status FillHere(const std::vector<Segment>& segments);
  // Inputs that are too large for it are overwritten with zeros first instead.
  absl::Status FillThroughHost(std::vector<Segment> segments);
  // A tensor that is shifted has bytes before it in its allocation: what reads right before it is only seen where it is
  // not. One whose alignment is larger than what the driver gave lies somewhere in a larger one.
  absl::Status Allocate(bool shifted);
  absl::Status ReadParts();

  GpuContext& gpu_;
  const v1::Job::Item& item_;
  const v1::Plan& plan_;
  Module module_, setup_;
  std::vector<std::unique_ptr<DeviceBuffer>> memory_, parts_;
  Sources sources_;
  Arena arena_;
  StructTable structs_;
  SecretRandom random_;
  const bool first_shifted_ = random_.Below(2) == 1;
};

absl::StatusOr<v1::Job> ReadJob(const std::string& file);

// Calls each item of a v1::Job file once, every tensor in an allocation of its own, which ends with it, without guard
// bands or poison: those would blind compute-sanitizer. What ncu and compute-sanitizer run. Ends before an item that is
// likely to end later than `limit` after the start, by the time of the one before and their tensors' bytes; the first
// is always called. Prints after each how many items were called.
absl::Status RunJob(const std::string& file, absl::Duration limit = absl::InfiniteDuration());

}  // namespace pawl
