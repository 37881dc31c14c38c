#pragma once

#include <atomic>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "worker/build/compiler.h"

namespace pawl {

// Builds with at most so many of the builder's processes side by side, so that others find some free, until it is told
// that somebody waits. Thread-safe: several threads that build side by side share them.
class FewAtATime : public Compiler {
 public:
  FewAtATime(Compiler& builder, int most) : builder_(builder), most_(most) {}
  absl::StatusOr<v1::BuildReply> Build(const v1::BuildRequest& request, const Stopped& stopped) override {
    return builder_.Build(request, stopped);
  }
  std::vector<absl::StatusOr<v1::BuildReply>> BuildBeside(const std::vector<v1::BuildRequest>& requests,
                                                          const Stopped& stopped) override;

  // What has not begun yet is built all at once.
  void Hurry() { hurries_ = true; }

 private:
  Compiler& builder_;
  const int most_;
  std::atomic<bool> hurries_ = false;
  absl::Mutex building_;
};

}  // namespace pawl
