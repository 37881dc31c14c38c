#include "bench/verdict/study_device.h"

namespace pawl {

absl::Status StudyDevice::Next() {
  if (!runners_.empty()) {
    busy_ += runners_.front()->busy_seconds();
    runners_.pop_front();
  }
  if (!runners_.empty()) return absl::OkStatus();
  for (int i = 0; i < ahead_; ++i) {
    RunnerProcess::Options options;
    options.program = cuda_.runner_program();
    options.device = cuda_.ordinal();
    options.shared_fd = cuda_.shared_fd();
    options.support_cubin = cuda_.support_cubin();
    options.sandboxing = &cuda_.sandboxing();
    runners_.push_back(std::make_unique<RunnerProcess>(options));
    if (absl::Status status = runners_.back()->OpenSpare(); !status.ok()) return status;
  }
  for (const std::unique_ptr<RunnerProcess>& runner : runners_) {
    if (absl::Status status = runner->Open(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace pawl
