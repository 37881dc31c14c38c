#include "worker/trial/timed_comparison.h"

#include <algorithm>

namespace pawl {
namespace {

constexpr double kLeastSeconds = 0.05;
constexpr double kMostSeconds = 40;  // that the reference may take for the calls of a process

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
        CompareSizesByProtocol([this](int process) { return StartProcess(process); }, timer_.protocol, noise_, rule_,
                               [this] { return timer_.doubted && timer_.doubted(timed_.processes); });
    if (!timed_.failure && !comparison.ok()) return comparison.status();
    if (comparison.ok()) timed_.comparison = *std::move(comparison);
    return std::move(timed_);
  }

 private:
  absl::StatusOr<SizedSource> StartProcess(int process) {
    if (process > 0) timer_.start_fresh_process();
    timed_.processes.emplace_back();
    return SizedSource(
        [this, process](size_t size, int pairs) { return Measure(timer_.protocol.sizes[size].size, pairs, process); });
  }

  absl::StatusOr<PairBatch> Measure(const std::string& size, int pairs, int process) {
    const bool first_pairs = !timed_.processes.back().times.contains(size);
    if (first_pairs && timer_.report) timer_.report(size, process);
    absl::StatusOr<Timing> timing = timer_.time(size, pairs, process);
    if (process == 0 && first_pairs && timing.ok() && !timing->failure && LacksPairs(timing->times, pairs)) {
      timer_.start_fresh_process();
      timing = timer_.time(size, pairs, process);
    }
    if (!timing.ok()) return timing.status();
    if (timing->failure) {
      timed_.failure = timing->failure;
      return absl::AbortedError("the candidate failed");  // ends the protocol; the failure is the answer
    }
    return Keep(timing->times, size, process);
  }

  // Fewer than asked for, and not because these are enough.
  bool LacksPairs(const v1::CompareReply& times, int asked) const {
    if (times.pairs_size() >= asked) return false;
    if (times.discarded() >= rule_.max_discarded) return true;
    std::vector<double> log_ratios;
    for (const v1::PairSample& pair : times.pairs()) log_ratios.push_back(pair.log_ratio());
    return !SurelySlower(log_ratios, noise_, rule_);
  }

  PairBatch Keep(const v1::CompareReply& times, const std::string& size, int process) {
    TimedProcess& kept = timed_.processes[static_cast<size_t>(process)];
    const bool several = timer_.protocol.sizes.size() > 1;
    PairBatch batch;
    batch.discarded = times.discarded();
    kept.discarded += times.discarded();
    kept.disturbances.insert(kept.disturbances.end(), times.disturbances().begin(), times.disturbances().end());
    for (const v1::PairSample& pair : times.pairs()) {
      batch.log_ratios.push_back(pair.log_ratio());
      kept.pairs.push_back(pair);
      kept.pairs.back().set_process(process);
      if (several) kept.pairs.back().set_size(size);
    }
    std::vector<double> parent, candidate;
    for (const v1::PairSample& pair : kept.pairs) {
      if (several && pair.size() != size) continue;
      parent.push_back(pair.parent_us());
      candidate.push_back(pair.candidate_us());
    }
    SideTimes& at = kept.times[size];
    at.pairs = candidate.size();
    at.warm_us = cold_ ? times.candidate_warm_us() : Median(candidate);
    at.cold_us = cold_ ? Median(candidate) : times.candidate_cold_us();
    at.parent_warm_us = cold_ ? times.parent_warm_us() : Median(parent);
    at.parent_cold_us = cold_ ? Median(parent) : times.parent_cold_us();
    return batch;
  }

  const PairTimer& timer_;
  const bool cold_;
  const v1::ProcessNoise& noise_;
  const KeepRule& rule_;
  TimedComparison timed_;
};

}  // namespace

KeepRule RuleOf(const v1::Trial& trial) { return trial.step() ? StepRuleOf(trial.keep()) : KeepRuleOf(trial.keep()); }

absl::StatusOr<TimedComparison> CompareTimed(const PairTimer& timer, v1::TimingMode deciding,
                                             const v1::ProcessNoise& noise, const KeepRule& rule) {
  return Comparing(timer, deciding, noise, rule).Run();
}

TimingOptions ChecksOfComparison::Options(const std::string& size, int pairs, int process) const {
  TimingOptions options{.pairs = pairs};
  if (process == 0) return options;
  const auto known = sizes_.find(size);
  const Checked checked = known == sizes_.end() ? Checked() : known->second;
  int wanted = kMostConfirmingCalls;
  if (checked.call_seconds > 0) {
    wanted = static_cast<int>(
        std::clamp<double>(kConfirmingSeconds / checked.call_seconds, kConfirmingCalls, kMostConfirmingCalls));
    wanted = std::min(wanted, std::max(kLeastConfirmingCalls, static_cast<int>(kMostSeconds / checked.call_seconds)));
  }
  const int left = wanted - checked.confirming;
  if (left <= options.checked_calls) return options;
  options.checked_calls = left;
  options.needed_calls = std::max(0, std::min(wanted, kConfirmingCalls) - checked.confirming);
  options.checked_bytes = kConfirmingBytes;
  options.least_checked = kLeastConfirmingCalls;
  return options;
}

void ChecksOfComparison::Add(const std::string& size, int process, const Timing& timing) {
  const auto& draws = timing.times.checked();
  if (draws.empty()) return;
  Checked& checked = sizes_[size];
  checked.call_seconds = timing.check_seconds / draws.size();
  if (process == 0) return;
  // Others show what a candidate does with other inputs, not how often it cheats.
  const int calls = static_cast<int>(std::count_if(draws.begin(), draws.end(), [](const v1::InputDraw& draw) {
    return draw.distribution() == v1::DISTRIBUTION_UNSPECIFIED;
  }));
  checked.confirming += calls;
}

void AddDisturbances(const std::vector<std::string>& reasons, v1::TrialResult* result) {
  for (const std::string& reason : reasons) {
    const auto& known = result->disturbances();
    if (std::find(known.begin(), known.end(), reason) == known.end()) result->add_disturbances(reason);
  }
}

SideTimes TimesAt(const TimedComparison& timed, const std::string& size) {
  std::vector<const SideTimes*> counted;
  for (size_t i = 1; i < timed.processes.size(); ++i) {
    const auto found = timed.processes[i].times.find(size);
    if (found != timed.processes[i].times.end() && found->second.pairs > 0) counted.push_back(&found->second);
  }
  if (counted.empty() && !timed.processes.empty()) {
    const auto found = timed.processes[0].times.find(size);
    if (found != timed.processes[0].times.end()) counted.push_back(&found->second);
  }
  SideTimes mean;
  const double share = 1.0 / static_cast<double>(std::max<size_t>(1, counted.size()));
  for (const SideTimes* times : counted) {
    mean.pairs += times->pairs;
    mean.warm_us += share * times->warm_us;
    mean.cold_us += share * times->cold_us;
    mean.parent_warm_us += share * times->parent_warm_us;
    mean.parent_cold_us += share * times->parent_cold_us;
  }
  return mean;
}

void SetTimes(const TimedComparison& timed, const std::string& size, v1::TrialResult* result) {
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
  }
  const SideTimes times = TimesAt(timed, size);
  result->set_warm_us(times.warm_us);
  result->set_cold_us(times.cold_us);
  result->set_parent_warm_us(times.parent_warm_us);
  result->set_parent_cold_us(times.parent_cold_us);
}

std::vector<SizeWeight> InformativeFirst(std::vector<SizeWeight> sizes, const std::map<std::string, double>& seconds) {
  const auto worth = [&](const SizeWeight& size) {
    const auto found = seconds.find(size.size);
    const double takes = found == seconds.end() ? kLeastSeconds : std::max(kLeastSeconds, found->second);
    return size.weight * size.weight / takes;
  };
  std::stable_sort(sizes.begin(), sizes.end(),
                   [&](const SizeWeight& a, const SizeWeight& b) { return worth(a) > worth(b); });
  return sizes;
}

}  // namespace pawl
