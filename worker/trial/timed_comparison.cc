#include "worker/trial/timed_comparison.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "profiles/verdict_protocol.h"

namespace pawl {
namespace {

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

class Comparing {
 public:
  Comparing(const PairTimer& timer, v1::TimingMode deciding, double stored_parent_us, const KeepRule& rule)
      : timer_(timer), cold_(deciding == v1::TIMING_MODE_COLD), stored_parent_us_(stored_parent_us), rule_(rule) {}

  absl::StatusOr<TimedComparison> Run() {
    absl::StatusOr<v1::Comparison> comparison = CompareByProtocol([this] { return StartProcess(); }, rule_);
    if (!timed_.failure && !comparison.ok()) return comparison.status();
    if (comparison.ok()) timed_.comparison = *std::move(comparison);
    return std::move(timed_);
  }

 private:
  absl::StatusOr<PairSource> StartProcess() {
    if (started_) {
      timer_.start_fresh_process();
      timed_.confirming.emplace();
    }
    if (timer_.report) timer_.report(started_);
    fresh_ = started_;
    started_ = true;
    return PairSource([this](int pairs) { return Measure(pairs); });
  }

  TimedProcess& process() { return timed_.confirming ? *timed_.confirming : timed_.first; }

  absl::StatusOr<PairBatch> Measure(int pairs) {
    const bool extends = !process().pairs.empty();
    absl::StatusOr<Timing> timing = timer_.time(pairs);
    if (timing.ok() && !extends) timing = Believable(*std::move(timing), pairs);
    if (!timing.ok()) return timing.status();
    if (timing->failure) {
      timed_.failure = timing->failure;
      return absl::AbortedError("the candidate failed");  // ends the protocol; the failure is the answer
    }
    return Keep(timing->times);
  }

  bool Unsteady(const Timing& timing, int pairs) const { return timing.times.pairs_size() < pairs; }
  double ParentUs(const Timing& timing) const {
    return cold_ ? timing.times.parent_cold_us() : timing.times.parent_warm_us();
  }
  std::optional<std::string> Drift(const Timing& timing) const {
    return ParentDrift(stored_parent_us_, ParentUs(timing), rule_);
  }

  // The first pairs of a process, or those of a fresh one where these can't be believed.
  absl::StatusOr<Timing> Believable(Timing timing, int pairs) {
    if (timing.failure) return timing;
    if (!fresh_ && (Unsteady(timing, pairs) || Drift(timing))) {
      timer_.start_fresh_process();
      fresh_ = true;
      absl::StatusOr<Timing> again = timer_.time(pairs);
      if (!again.ok() || again->failure) return again;
      timing = *std::move(again);
    }
    if (Unsteady(timing, pairs) || !Drift(timing) || !timer_.time_parent_alone) return timing;
    return ComparedAlone(std::move(timing), pairs);
  }

  absl::StatusOr<Timing> ComparedAlone(Timing timing, int pairs) {
    absl::StatusOr<Timing> alone = timer_.time_parent_alone(pairs);
    if (!alone.ok()) return alone.status();
    if (alone->failure) {
      return absl::InternalError(absl::StrCat("the parent failed beside itself: ", alone->failure->message()));
    }
    const std::string seen = absl::StrFormat(
        "%.3f us is stored for the parent, it took %.3f us beside this candidate and "
        "%.3f us alone",
        stored_parent_us_, ParentUs(timing), ParentUs(*alone));
    // Nearer to what is stored than to what it took beside the candidate, it is this candidate that slows it.
    const bool as_beside = std::abs(std::log(ParentUs(*alone) / ParentUs(timing))) <=
                           std::abs(std::log(ParentUs(*alone) / stored_parent_us_));
    stored_parent_us_ = ParentUs(*alone);
    if (as_beside && !Drift(timing)) {
      timed_.notes = absl::StrCat(seen, ": the GPU is in another state than it was");
      return timing;
    }
    timing.failure.emplace();
    timing.failure->set_stage(v1::STAGE_MEASURE);
    timing.failure->set_check(v1::CHECK_UNSTEADY);
    timing.failure->set_message(absl::StrCat(seen, ": the comparison can't be believed"));
    return timing;
  }

  PairBatch Keep(const v1::CompareReply& times) {
    TimedProcess& kept = process();
    PairBatch batch;
    batch.discarded = times.discarded();
    kept.discarded += times.discarded();
    for (const v1::PairSample& pair : times.pairs()) {
      batch.log_ratios.push_back(pair.log_ratio());
      kept.pairs.push_back(pair);
    }
    std::vector<double> parent, candidate;
    for (const v1::PairSample& pair : kept.pairs) {
      parent.push_back(pair.parent_us());
      candidate.push_back(pair.candidate_us());
    }
    kept.warm_us = cold_ ? times.candidate_warm_us() : Median(candidate);
    kept.cold_us = cold_ ? Median(candidate) : times.candidate_cold_us();
    kept.parent_warm_us = cold_ ? times.parent_warm_us() : Median(parent);
    kept.parent_cold_us = cold_ ? Median(parent) : times.parent_cold_us();
    return batch;
  }

  const PairTimer& timer_;
  const bool cold_;
  double stored_parent_us_;
  const KeepRule& rule_;
  bool started_ = false;  // the first process
  bool fresh_ = false;    // the present process began with this comparison
  TimedComparison timed_;
};

}  // namespace

absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding, double stored_parent_us,
                                             const KeepRule& rule) {
  return Comparing(timer, deciding, stored_parent_us, rule).Run();
}

void SetTimes(const TimedComparison& timed, v1::TrialResult* result) {
  for (const v1::PairSample& pair : timed.first.pairs) *result->add_pairs() = pair;
  result->set_discarded(timed.first.discarded);
  if (timed.confirming) {
    for (const v1::PairSample& pair : timed.confirming->pairs) *result->add_confirming_pairs() = pair;
    result->set_confirming_discarded(timed.confirming->discarded);
  }
  result->set_warm_us(timed.counted().warm_us);
  result->set_cold_us(timed.counted().cold_us);
  result->set_parent_warm_us(timed.counted().parent_warm_us);
  result->set_parent_cold_us(timed.counted().parent_cold_us);
}

}  // namespace pawl
