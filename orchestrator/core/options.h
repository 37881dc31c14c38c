#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "profiles/profile_set.h"

namespace pawl {

struct OrchestratorOptions {
  absl::Duration lease = absl::Seconds(15);
  absl::Duration renew = absl::Seconds(5);
  int max_unfinished = 1000;                            // campaigns; more are refused
  int max_killed = 3;                                   // workers lost to a trial before it is put aside
  absl::Duration verification = absl::Seconds(60);      // a verification that no worker took is given up after this
  absl::Duration forget_workers = absl::Hours(24 * 7);  // not heard of for so long, at the next start
  const ProfileSet* profiles = &ProfileSet::Default();  // rules and gates; must outlive the orchestrator
  // Told of each campaign that has ended, once that is on disk, on the thread that ended it: it must not take long.
  std::function<void(int64_t)> ended = nullptr;
};

}  // namespace pawl
