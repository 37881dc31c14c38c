#pragma once

#include <cstddef>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/build/compiler.h"

namespace pawl {

// Builds with at most so many of the builder's processes side by side, so that others find some free, until it is told
// that somebody waits. Thread-safe: several threads that build side by side share them.
class FewAtATime : public Compiler {
 public:
  FewAtATime(Compiler& builder, int most) : builder_(builder), free_(most) {}
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped) override {
    return builder_.Build(request, stopped);
  }
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override;

  // What has not begun yet is built all at once.
  void Hurry();

 private:
  // How many of `wanted` may be built now: waits until one may. All of them where somebody waits.
  std::ptrdiff_t Begin(std::ptrdiff_t wanted);
  void End(std::ptrdiff_t built);

  Compiler& builder_;
  absl::Mutex mutex_;
  std::ptrdiff_t free_ ABSL_GUARDED_BY(mutex_);  // below 0 where somebody waits
  bool hurries_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace pawl
