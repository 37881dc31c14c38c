#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "orchestrator/engine/state/campaign.h"
#include "orchestrator/meters/exposition.h"
#include "pawl/v1/event.pb.h"

namespace pawl {

// What a trial took, by the price of its campaign's GPU; 0 dollars: the price is not known.
struct TrialCost {
  double seconds = 0, dollars = 0;
};
TrialCost CostOf(const v1::TrialFinished& finished, const v1::Campaign& campaign);

// What happened since this process started: counts of events that are on disk, and how long commits and calls took.
// Names that others choose (authors, GPUs) are counted apart up to a limit, and together as "other" beyond it.
// Thread-safe.
class Meters {
 public:
  // An event that was committed, and its campaign after it.
  void Count(const v1::Event& event, const CampaignState& campaign);
  void ObserveCommit(absl::Duration took);
  // `method`: "/pawl.v1.CampaignService/GetCampaign".
  void ObserveCall(const std::string& method, absl::Duration took);

  void Write(Exposition* text) const;

 private:
  std::string GpuLabel(const std::string& gpu) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountFinished(const v1::TrialFinished& finished, const CampaignState& campaign)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<std::string, bool> gpus_ ABSL_GUARDED_BY(mutex_);  // that have a label of their own
  int64_t submitted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int64_t> leased_ ABSL_GUARDED_BY(mutex_);                            // by GPU
  std::map<std::pair<std::string, std::string>, int64_t> finished_ ABSL_GUARDED_BY(mutex_);  // by GPU and verdict
  std::map<std::string, int64_t> same_code_ ABSL_GUARDED_BY(mutex_);                         // by GPU
  std::map<std::pair<std::string, std::string>, int64_t> builds_
      ABSL_GUARDED_BY(mutex_);                                          // by GPU and "cache" or "compiler"
  std::map<std::string, int64_t> built_ahead_ ABSL_GUARDED_BY(mutex_);  // by GPU
  std::map<std::pair<std::string, std::string>, double> stages_ ABSL_GUARDED_BY(mutex_);  // seconds by GPU and stage
  std::map<std::string, int64_t> lost_ ABSL_GUARDED_BY(mutex_);                           // by reason
  std::map<std::string, int64_t> ended_ ABSL_GUARDED_BY(mutex_);                          // campaigns by state
  std::map<std::string, TrialCost> used_ ABSL_GUARDED_BY(mutex_);                         // by author
  LatencyHistogram commits_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, LatencyHistogram> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pawl
