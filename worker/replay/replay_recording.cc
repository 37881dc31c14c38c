#include "worker/replay/replay_recording.h"

#include <cctype>
#include <cmath>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "profiles/metrics.h"
#include "worker/replay/recorded_speedups.h"

namespace pawl {
namespace {

// Of the anchor kernel, which no recording of version 0.1.0 has: a variant takes the same share of it in every process.
constexpr double kAnchorUs = 10;

// SplitMix64: the standard library's distributions differ between libraries, and a replay must not.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Below(uint64_t limit) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % limit;
  }
  // Nearly normal, with mean 0 and variance 1: the sum of twelve uniform numbers.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(Below(1 << 30)) / (1 << 30);
    return sum;
  }

 private:
  uint64_t state_;
};

// Names of the metrics that a launch has without any counter.
std::set<std::string> UncountedNames(const v1::RecordedVariant& record, const v1::GpuInfo& gpu) {
  std::set<std::string> names;
  for (const v1::LaunchEvidence& recorded : record.evidence().launches()) {
    v1::LaunchEvidence launch = recorded;
    launch.clear_metrics();
    // What the bundle says of its work.
    for (const char* given : {"work_bytes", "work_flops", "matrix_work"}) {
      const auto found = recorded.metrics().find(given);
      if (found != recorded.metrics().end()) (*launch.mutable_metrics())[given] = found->second;
    }
    for (const auto& [name, value] : Metrics::Default().Derive(nullptr, launch, gpu)) names.insert(name);
  }
  return names;
}

v1::Evidence WithoutCounters(const v1::Evidence& evidence, const std::set<std::string>& names) {
  v1::Evidence uncounted;
  for (const v1::LaunchEvidence& launch : evidence.launches()) {
    v1::LaunchEvidence* added = uncounted.add_launches();
    added->set_entry(launch.entry());
    *added->mutable_geometry() = launch.geometry();
    *added->mutable_resources() = launch.resources();
    for (const auto& [name, value] : launch.metrics()) {
      if (names.contains(name)) (*added->mutable_metrics())[name] = value;
    }
  }
  uncounted.set_partial(true);
  uncounted.set_partial_reason("not profiled: only what is about to be kept is");
  return uncounted;
}

// Residuals of the recorded pairs. With the mean taken from n of them, they spread by sqrt((n - 1) / n) of
// what fresh ones would.
void SetNoise(ReplayedVariant* variant) {
  const int n = variant->record.pairs_size();
  if (n == 0) return;
  double sum = 0;
  for (const v1::PairSample& pair : variant->record.pairs()) sum += pair.log_ratio();
  const double mean = sum / n, widen = n > 1 ? std::sqrt(n / (n - 1.0)) : 1;
  for (const v1::PairSample& pair : variant->record.pairs()) {
    variant->residuals.push_back((pair.log_ratio() - mean) * widen);
  }
}

}  // namespace

std::string WithArticle(const std::string& name) {
  if (name.empty()) return "a GPU";
  const bool spelt = name.size() > 1 && !std::islower(static_cast<unsigned char>(name[1]));  // H200, NVIDIA, RTX
  const bool vowel = std::strchr(spelt ? "AEFHILMNORSX" : "AEIOUaeiou", name[0]) != nullptr;
  return absl::StrCat(vowel ? "an " : "a ", name);
}

std::string ReplayLabel(const v1::RecordingHeader& header) {
  return absl::StrCat("replay of ", WithArticle(header.gpu().name()), ", recorded on ",
                      header.date().substr(0, header.date().find('T')));
}

ReplayRecording::ReplayRecording(Recording recording) : header_(std::move(recording.header)) {
  const std::string start = VariantText(header_.start());
  const RecordedSpeedups speedups = SpeedupsOf(header_, recording.variants);
  variants_.resize(recording.variants.size());
  std::set<std::string> uncounted;
  for (size_t i = 0; i < variants_.size(); ++i) {
    ReplayedVariant& variant = variants_[i];
    variant.record = std::move(recording.variants[i]);
    const std::string text = VariantText(variant.record.variant());
    const auto speedup = speedups.log_speedup.find(text);
    if (speedup == speedups.log_speedup.end()) continue;  // nothing to go by, which no recording that was read has
    variant.log_ratio = speedup->second;
    SetNoise(&variant);
    if (text == start) start_ = &variant;
    by_text_[text] = &variant;
    if (!variant.record.has_evidence()) continue;
    // Which metrics are counters is the same for all variants of a bundle, or nearly: the first ones tell.
    if (i < 4) uncounted.merge(UncountedNames(variant.record, header_.gpu()));
    variant.uncounted = WithoutCounters(variant.record.evidence(), uncounted);
  }
  for (const auto& [text, variant] : by_text_) {
    if (!variant->record.has_beside_start()) continue;
    ReplayedVariant direct = *variant;
    direct.log_ratio = variant->record.beside_start().mean_log_ratio();
    beside_start_.emplace(text, std::move(direct));
  }
}

const ReplayedVariant* ReplayRecording::Find(const v1::Variant& variant) const {
  const auto found = by_text_.find(VariantText(variant));
  return found == by_text_.end() ? nullptr : found->second;
}

const ReplayedVariant* ReplayRecording::FindBesideStart(const v1::Variant& variant) const {
  const auto direct = beside_start_.find(VariantText(variant));
  return direct == beside_start_.end() ? Find(variant) : &direct->second;
}

double ReplayRecording::WarmUs(const ReplayedVariant& variant, v1::TimingMode deciding) const {
  if (deciding == v1::TIMING_MODE_COLD || start_ == nullptr) return variant.record.warm_us();
  return start_->record.warm_us() * std::exp(-variant.log_ratio);
}

double ReplayRecording::ColdUs(const ReplayedVariant& variant, v1::TimingMode deciding) const {
  if (start_ == nullptr) return variant.record.cold_us();
  if (deciding == v1::TIMING_MODE_COLD) return start_->record.cold_us() * std::exp(-variant.log_ratio);
  if (!(variant.record.start_cold_us() > 0)) return variant.record.cold_us();
  return start_->record.cold_us() * variant.record.cold_us() / variant.record.start_cold_us();
}

Timing ReplayRecording::Pairs(const ReplayedVariant& candidate, const ReplayedVariant& parent, v1::TimingMode deciding,
                              int pairs, const ReplayedProcess& process) const {
  Timing timing;
  v1::CompareReply& times = timing.times;
  times.set_candidate_warm_us(WarmUs(candidate, deciding));
  times.set_candidate_cold_us(ColdUs(candidate, deciding));
  times.set_parent_warm_us(WarmUs(parent, deciding));
  times.set_parent_cold_us(ColdUs(parent, deciding));
  const bool cold = deciding == v1::TIMING_MODE_COLD;
  const double candidate_us = cold ? times.candidate_cold_us() : times.candidate_warm_us();
  const double parent_us = cold ? times.parent_cold_us() : times.parent_warm_us();
  const size_t own = candidate.residuals.size(), all = own + parent.residuals.size();
  const double effect = Random(process.seed).Normal() * std::sqrt(NoiseOf(header_.gpu().name()).variance());
  Random random(process.seed + 1 + static_cast<uint64_t>(process.pairs_before));
  for (int i = 0; i < pairs; ++i) {
    const size_t drawn = all > 0 ? random.Below(all) : 0;
    const ReplayedVariant& from = drawn < own ? candidate : parent;
    const size_t at = drawn < own ? drawn : drawn - own;
    const double noise = effect + (all > 0 ? from.residuals[at] : 0);
    v1::PairSample* pair = times.add_pairs();
    pair->set_parent_us(parent_us * std::exp(noise / 2));
    pair->set_candidate_us(candidate_us * std::exp(-noise / 2));
    pair->set_log_ratio(std::log(parent_us / candidate_us) + noise);
    pair->set_anchor_us(kAnchorUs);
    if (all == 0) continue;
    *pair->mutable_before() = from.record.pairs(static_cast<int>(at)).before();
    *pair->mutable_after() = from.record.pairs(static_cast<int>(at)).after();
  }
  return timing;
}

}  // namespace pawl
