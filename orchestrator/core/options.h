#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "profiles/profile_set.h"

namespace pawl {

// What the trials of one author's campaigns may take; absent: as much as they like.
struct SpendingLimit {
  std::optional<double> gpu_seconds, dollars;
};
inline constexpr char kEachAuthor[] = "*";  // in place of a name: every author who is not listed

struct OrchestratorOptions {
  absl::Duration lease = absl::Seconds(15);
  absl::Duration renew = absl::Seconds(5);
  int max_unfinished = 1000;  // campaigns; more are refused
  // That take in results and decide what follows from them.
  int result_threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2u, 8u));
  // Bundles, proposals and source edits of unfinished campaigns, which are in memory: of all, and of one author. A
  // bundle that several campaigns share counts once.
  int64_t max_bundle_bytes = int64_t{1} << 30;
  int64_t max_author_bytes = int64_t{256} << 20;
  // Workers that several authors want are shared among them by weight; who is not listed has 1.
  std::map<std::string, double> shares = {};
  // By author, within the window before now: no trial of an author who has reached a limit is leased. Replays count for
  // nothing.
  std::map<std::string, SpendingLimit> limits = {};
  absl::Duration limit_window = absl::Hours(30 * 24);
  int max_killed = 3;                                   // workers lost to a trial before it is put aside
  absl::Duration verification = absl::Seconds(60);      // a verification that no worker took is given up after this
  absl::Duration forget_workers = absl::Hours(24 * 7);  // not heard of for so long, at the next start
  std::function<absl::Duration()> monotonic = [] {      // never set back or forth; from any beginning
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  };
  const ProfileSet* profiles = &ProfileSet::Default();  // rules and gates; must outlive the orchestrator
  // Told of each campaign that has ended, once that is on disk, on the thread that ended it: it must not take long.
  std::function<void(int64_t)> ended = nullptr;
};

}  // namespace pawl
