#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/bundle.pb.h"
#include "worker/build/built_variant.h"

namespace pawl {

// Builds variants in order on a few threads, a bounded number ahead of the caller of Next.
class BuildAhead {
 public:
  using Build = std::function<absl::StatusOr<BuiltVariant>(const v1::Variant&)>;
  BuildAhead(const std::vector<v1::Variant>& variants, Build build, int threads = std::thread::hardware_concurrency());
  ~BuildAhead();

  // Puts more at the end of the list.
  void Add(const std::vector<v1::Variant>& variants);
  // The next variant of the list, in its order; may be called once for each.
  absl::StatusOr<BuiltVariant> Next();

 private:
  void Work();
  struct Task {
    size_t place;  // in the list
    v1::Variant variant;
  };
  // Waits for the next variant to build; none: stop.
  std::optional<Task> NextToBuild();

  const Build build_;
  const size_t ahead_;

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<v1::Variant> variants_ ABSL_GUARDED_BY(mutex_);
  std::map<size_t, absl::StatusOr<BuiltVariant>> built_ ABSL_GUARDED_BY(mutex_);
  size_t to_build_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t to_take_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::thread> threads_;
};

}  // namespace pawl
