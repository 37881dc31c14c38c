#include "profiles/verdict_protocol.h"

#include <algorithm>
#include <cmath>

namespace pawl {
namespace {

class Protocol {
 public:
  Protocol(const SizedSourceStarter& start, const SizesProtocol& protocol, const v1::ProcessNoise& noise,
           const KeepRule& rule)
      : start_(start), protocol_(protocol), noise_(noise), rule_(rule) {
    for (const SizeWeight& size : protocol.sizes) pairs_.push_back({size.size, size.weight, {}});
  }

  absl::StatusOr<v1::Comparison> Run(const std::function<bool()>& doubted) {
    if (absl::Status status = MeasureFirst(); !status.ok()) return status;
    v1::Comparison comparison = Compared();
    const auto in_doubt = [&] {
      return doubted && comparison.result() == v1::FASTER && comparison.processes() < rule_.max_processes && doubted();
    };
    while (!Lost() && (WantsProcess(comparison, rule_, pairs_.size()) || in_doubt())) {
      if (absl::Status status = Confirm(comparison.processes()); !status.ok()) return status;
      comparison = Compared();
    }
    return comparison;
  }

 private:
  v1::Comparison Compared() const { return CompareSizes(pairs_, noise_, rule_); }

  // A size is slower than the goal allows, whatever the others are.
  bool Lost() const {
    return protocol_.stop_early && std::any_of(pairs_.begin(), pairs_.end(), [&](const SizePairs& size) {
             return SurelyBelow(size, protocol_.worst, noise_, rule_);
           });
  }

  absl::Status MeasureFirst() {
    absl::StatusOr<SizedSource> source = start_(0);
    if (!source.ok()) return source.status();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (i > 0 && protocol_.stop_early && (Compared().upper() < std::log1p(rule_.min_gain) || Lost())) {
        return absl::OkStatus();
      }
      absl::StatusOr<PairBatch> pairs = (*source)(i, rule_.first_pairs);
      if (!pairs.ok()) return pairs.status();
      pairs_[i].processes.push_back(*std::move(pairs));
    }
    if (EndedTooEarly()) {
      absl::Status status = Extend(*source, 0, rule_.first_pairs, &pairs_[0].processes[0]);
      if (!status.ok()) return status;
    }
    if (Lost()) return absl::OkStatus();
    for (const size_t i : WantMorePairs(pairs_, noise_, rule_)) {
      absl::Status status = Extend(*source, i, rule_.extended_pairs, &pairs_[i].processes[0]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Confirm(int process) {
    absl::StatusOr<SizedSource> source = start_(process);
    if (!source.ok()) return source.status();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      const bool whole = protocol_.whole.empty() || protocol_.whole == pairs_[i].size;
      absl::StatusOr<PairBatch> pairs = (*source)(i, whole ? rule_.extended_pairs : rule_.first_pairs);
      if (!pairs.ok()) return pairs.status();
      pairs_[i].processes.push_back(*std::move(pairs));
    }
    if (protocol_.whole.empty() || Lost() || Compared().result() == v1::FASTER) return absl::OkStatus();
    for (size_t i = 0; i < pairs_.size(); ++i) {
      if (protocol_.whole == pairs_[i].size) continue;
      absl::Status status = Extend(*source, i, rule_.extended_pairs, &pairs_[i].processes.back());
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  // The first process ended with few pairs because they seemed to be enough, and they are not.
  bool EndedTooEarly() const {
    if (rule_.sure_pairs == 0 || pairs_.size() > 1) return false;
    const PairBatch& first = pairs_[0].processes[0];
    const auto pairs = static_cast<int>(first.log_ratios.size());
    return pairs >= rule_.sure_pairs && pairs < rule_.first_pairs && first.discarded < rule_.max_discarded &&
           Compared().result() != v1::SLOWER;
  }

  absl::Status Extend(const SizedSource& source, size_t size, int pairs, PairBatch* batch) {
    absl::StatusOr<PairBatch> more = source(size, pairs - static_cast<int>(batch->log_ratios.size()));
    if (!more.ok()) return more.status();
    batch->log_ratios.insert(batch->log_ratios.end(), more->log_ratios.begin(), more->log_ratios.end());
    batch->discarded += more->discarded;
    return absl::OkStatus();
  }

  const SizedSourceStarter& start_;
  const SizesProtocol& protocol_;
  const v1::ProcessNoise& noise_;
  const KeepRule& rule_;
  std::vector<SizePairs> pairs_;
};

}  // namespace

absl::StatusOr<v1::Comparison> CompareSizesByProtocol(const SizedSourceStarter& start, const SizesProtocol& protocol,
                                                      const v1::ProcessNoise& noise, const KeepRule& rule,
                                                      const std::function<bool()>& doubted) {
  return Protocol(start, protocol, noise, rule).Run(doubted);
}

absl::StatusOr<v1::Comparison> CompareByProtocol(const PairSourceStarter& start, const v1::ProcessNoise& noise,
                                                 const KeepRule& rule, const std::function<bool()>& doubted) {
  const SizedSourceStarter only = [&](int process) -> absl::StatusOr<SizedSource> {
    absl::StatusOr<PairSource> source = start(process);
    if (!source.ok()) return source.status();
    return SizedSource([source = *std::move(source)](size_t, int pairs) { return source(pairs); });
  };
  return CompareSizesByProtocol(only, {.sizes = {{"", 1}}}, noise, rule, doubted);
}

}  // namespace pawl
