#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/sync/steady_condition.h"
#include "worker/build/built_variant.h"
#include "worker/validate/output_check.h"

namespace pawl {

// A variant built before anybody asked for it, at the sizes that its validation will use.
struct AheadVariant {
  SizesToValidate sizes;
  BuiltVariant built;
};

// Builds variants that are expected next while something else is measured. What was expected in vain costs idle cores
// and nothing else. Thread-safe.
class AheadBuilds {
 public:
  using Build = std::function<absl::StatusOr<AheadVariant>(const Stopped&)>;

  // Threads are started with the first variant that is expected.
  explicit AheadBuilds(int threads) : count_(threads) {}
  // Ends builds that run.
  ~AheadBuilds();

  // Variants by key, the likeliest first, instead of those that were expected before and wait to be built.
  void Expect(std::vector<std::pair<std::string, Build>> variants);

  // The variant with this key, once; waits where it is being built. Nothing: it was not expected, its turn did not
  // come, it could not be built here, or `stopped`.
  std::optional<AheadVariant> Take(const std::string& key, const Stopped& stopped);

 private:
  void Work();

  const int count_;
  absl::Mutex mutex_;
  SteadyCondition changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<std::pair<std::string, Build>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> building_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::pair<std::string, AheadVariant>> built_ ABSL_GUARDED_BY(mutex_);  // the latest last
  std::vector<std::thread> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
