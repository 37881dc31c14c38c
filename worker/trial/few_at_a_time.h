#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/build/compiler.h"
#include "worker/validate/gpu_device.h"

namespace pawl {

// Builds with at most so many of the builder's processes side by side, so that others find some free. Thread-safe:
// several threads that build side by side share them.
class FewAtATime : public Compiler {
 public:
  FewAtATime(GpuDevice& device, int most) : device_(device), most_(most) {}
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped) override {
    return device_.builder().Build(request, stopped);
  }
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override;

 private:
  GpuDevice& device_;
  const int most_;
  absl::Mutex building_;
};

}  // namespace pawl
