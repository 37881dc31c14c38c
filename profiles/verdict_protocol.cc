#include "profiles/verdict_protocol.h"

namespace pawl {
namespace {

absl::StatusOr<v1::Comparison> CompareInOneProcess(const PairSourceStarter& start, const KeepRule& rule) {
  absl::StatusOr<PairSource> source = start();
  if (!source.ok()) return source.status();
  absl::StatusOr<PairBatch> pairs = (*source)(rule.first_pairs);
  if (!pairs.ok()) return pairs.status();
  v1::Comparison comparison = Compare(pairs->log_ratios, pairs->discarded, rule);
  if (!WantsMorePairs(comparison, rule)) return comparison;

  absl::StatusOr<PairBatch> more = (*source)(rule.extended_pairs - comparison.pairs());
  if (!more.ok()) return more.status();
  pairs->log_ratios.insert(pairs->log_ratios.end(), more->log_ratios.begin(), more->log_ratios.end());
  return Compare(pairs->log_ratios, pairs->discarded + more->discarded, rule);
}

}  // namespace

absl::StatusOr<v1::Comparison> CompareByProtocol(const PairSourceStarter& start, const KeepRule& rule) {
  absl::StatusOr<v1::Comparison> first = CompareInOneProcess(start, rule);
  if (!first.ok() || first->result() != v1::FASTER) return first;
  absl::StatusOr<v1::Comparison> fresh = CompareInOneProcess(start, rule);
  if (!fresh.ok()) return fresh.status();
  return Confirm(*first, *fresh, rule);
}

}  // namespace pawl
