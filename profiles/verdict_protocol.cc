#include "profiles/verdict_protocol.h"

#include <vector>

namespace pawl {
namespace {

absl::StatusOr<PairBatch> MeasureFirst(const PairSourceStarter& start, const v1::ProcessNoise& noise,
                                       const KeepRule& rule) {
  absl::StatusOr<PairSource> source = start(0);
  if (!source.ok()) return source.status();
  absl::StatusOr<PairBatch> pairs = (*source)(rule.first_pairs);
  if (!pairs.ok() || !WantsMorePairs(*pairs, noise, rule)) return pairs;
  absl::StatusOr<PairBatch> more = (*source)(rule.extended_pairs - static_cast<int>(pairs->log_ratios.size()));
  if (!more.ok()) return more.status();
  pairs->log_ratios.insert(pairs->log_ratios.end(), more->log_ratios.begin(), more->log_ratios.end());
  pairs->discarded += more->discarded;
  return pairs;
}

}  // namespace

absl::StatusOr<v1::Comparison> CompareByProtocol(const PairSourceStarter& start, const v1::ProcessNoise& noise,
                                                 const KeepRule& rule, const std::function<bool()>& doubted) {
  const auto in_doubt = [&](const v1::Comparison& comparison) {
    return doubted && comparison.result() == v1::FASTER && comparison.processes() < rule.max_processes && doubted();
  };
  absl::StatusOr<PairBatch> first = MeasureFirst(start, noise, rule);
  if (!first.ok()) return first.status();
  std::vector<PairBatch> processes = {*std::move(first)};
  v1::Comparison comparison = Compare(processes, noise, rule);
  while (WantsProcess(comparison, rule) || in_doubt(comparison)) {
    absl::StatusOr<PairSource> source = start(comparison.processes());
    if (!source.ok()) return source.status();
    absl::StatusOr<PairBatch> pairs = (*source)(rule.extended_pairs);
    if (!pairs.ok()) return pairs.status();
    processes.push_back(*std::move(pairs));
    comparison = Compare(processes, noise, rule);
  }
  return comparison;
}

}  // namespace pawl
