#include "worker/trial/timed_comparison.h"

#include <algorithm>

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
  Comparing(const PairTimer& timer, v1::TimingMode deciding, const v1::ProcessNoise& noise, const KeepRule& rule)
      : timer_(timer), cold_(deciding == v1::TIMING_MODE_COLD), noise_(noise), rule_(rule) {}

  absl::StatusOr<TimedComparison> Run() {
    absl::StatusOr<v1::Comparison> comparison =
        CompareByProtocol([this](int process) { return StartProcess(process); }, noise_, rule_,
                          [this] { return timer_.doubted && timer_.doubted(timed_.processes); });
    if (!timed_.failure && !comparison.ok()) return comparison.status();
    if (comparison.ok()) timed_.comparison = *std::move(comparison);
    return std::move(timed_);
  }

 private:
  absl::StatusOr<PairSource> StartProcess(int process) {
    if (process > 0) timer_.start_fresh_process();
    if (timer_.report) timer_.report(process);
    timed_.processes.emplace_back();
    return PairSource([this, process](int pairs) { return Measure(pairs, process); });
  }

  absl::StatusOr<PairBatch> Measure(int pairs, int process) {
    const bool first_pairs = process == 0 && timed_.processes[0].pairs.empty();
    absl::StatusOr<Timing> timing = timer_.time(pairs, process);
    if (first_pairs && timing.ok() && !timing->failure && timing->times.pairs_size() < pairs) {
      timer_.start_fresh_process();
      timing = timer_.time(pairs, process);
    }
    if (!timing.ok()) return timing.status();
    if (timing->failure) {
      timed_.failure = timing->failure;
      return absl::AbortedError("the candidate failed");  // ends the protocol; the failure is the answer
    }
    return Keep(timing->times, process);
  }

  PairBatch Keep(const v1::CompareReply& times, int process) {
    TimedProcess& kept = timed_.processes[static_cast<size_t>(process)];
    PairBatch batch;
    batch.discarded = times.discarded();
    kept.discarded += times.discarded();
    kept.disturbances.insert(kept.disturbances.end(), times.disturbances().begin(), times.disturbances().end());
    for (const v1::PairSample& pair : times.pairs()) {
      batch.log_ratios.push_back(pair.log_ratio());
      kept.pairs.push_back(pair);
      kept.pairs.back().set_process(process);
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
  const v1::ProcessNoise& noise_;
  const KeepRule& rule_;
  TimedComparison timed_;
};

}  // namespace

absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding,
                                             const v1::ProcessNoise& noise, const KeepRule& rule) {
  return Comparing(timer, deciding, noise, rule).Run();
}

void AddDisturbances(const std::vector<std::string>& reasons, v1::TrialResult* result) {
  for (const std::string& reason : reasons) {
    const auto& known = result->disturbances();
    if (std::find(known.begin(), known.end(), reason) == known.end()) result->add_disturbances(reason);
  }
}

void SetTimes(const TimedComparison& timed, v1::TrialResult* result) {
  std::vector<const TimedProcess*> counted;
  for (const TimedProcess& process : timed.processes) {
    const bool first = &process == &timed.processes[0];
    for (const v1::PairSample& pair : process.pairs)
      *(first ? result->add_pairs() : result->add_confirming_pairs()) = pair;
    if (first) {
      result->set_discarded(process.discarded);
    } else {
      result->set_confirming_discarded(result->confirming_discarded() + process.discarded);
    }
    AddDisturbances(process.disturbances, result);
    if (!first && !process.pairs.empty()) counted.push_back(&process);
  }
  if (counted.empty() && !timed.processes.empty()) counted.push_back(&timed.processes[0]);
  const double share = 1.0 / static_cast<double>(std::max<size_t>(1, counted.size()));
  double warm = 0, cold = 0, parent_warm = 0, parent_cold = 0;
  for (const TimedProcess* process : counted) {
    warm += share * process->warm_us;
    cold += share * process->cold_us;
    parent_warm += share * process->parent_warm_us;
    parent_cold += share * process->parent_cold_us;
  }
  result->set_warm_us(warm);
  result->set_cold_us(cold);
  result->set_parent_warm_us(parent_warm);
  result->set_parent_cold_us(parent_cold);
}

}  // namespace pawl
