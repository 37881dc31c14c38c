#include "base/revision/settled_verdicts.h"

#include <algorithm>

#include "base/revision/revision.h"

namespace pawl {

std::vector<v1::Iteration> SettledVerdicts::Take(const v1::Event& event) {
  std::vector<v1::Iteration> settled;
  const v1::TrialFinished& finished = event.finished();
  double kept = 0;  // speed over the start of the fastest that it keeps
  for (const v1::RevisedIteration& revision : finished.revised()) {
    if (revision.verdict() == v1::KEPT) kept = std::max(kept, revision.speedup_over_start());
    const auto waiting = waiting_.find(revision.number());
    if (waiting == waiting_.end()) continue;
    ReviseIteration(revision, &waiting->second);
    if (AwaitsComparison(waiting->second)) continue;
    settled.push_back(waiting->second);
    waiting_.erase(waiting);
  }
  if (const v1::Iteration& judged = finished.iteration(); judged.verdict() != v1::VERDICT_UNSPECIFIED) {
    if (judged.verdict() == v1::KEPT) kept = std::max(kept, judged.speedup_over_start());
    if (AwaitsComparison(judged)) {
      waiting_[judged.number()] = judged;
    } else {
      settled.push_back(judged);
    }
  }
  // What is not faster than the best any more is not compared with it.
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    if (waiting->second.speedup_over_start() > kept) {
      ++waiting;
      continue;
    }
    settled.push_back(waiting->second);
    waiting = waiting_.erase(waiting);
  }
  return settled;
}

}  // namespace pawl
