#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "pawl/v1/trial.pb.h"

namespace pawl {

// How long the stages of a campaign's trials took so far, to say how long the next will take. Thread-safe.
class StageTimes {
 public:
  void Add(const std::string& campaign, const v1::TrialResult& result);

  // What is left, by the mean of earlier trials, for one that has been in `stage` for `seconds`; 0: there were none.
  double SecondsLeft(const std::string& campaign, v1::Stage stage, double seconds) const;

 private:
  struct Sums {
    int trials = 0;
    std::map<v1::Stage, double> seconds;
  };

  mutable absl::Mutex mutex_;
  std::map<std::string, Sums> campaigns_ ABSL_GUARDED_BY(mutex_);
};

// "campaigns/7" of "campaigns/7/trials/13".
std::string CampaignOf(const std::string& name);

}  // namespace pawl
