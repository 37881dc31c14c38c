#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "pawl/v1/bundle.pb.h"
#include "pawl/v1/recording.pb.h"
#include "worker/replay/recording.h"
#include "worker/trial/timer.h"

namespace pawl {

// One variant of a recording, with what replaying needs of it again and again.
struct ReplayedVariant {
  v1::RecordedVariant record;
  double log_ratio = 0;           // log(start time / its time), by what it was measured beside; 0 of the start itself
  std::vector<double> residuals;  // of its recorded pairs, widened for the mean that was taken from them
  v1::Evidence uncounted;         // its evidence as it is without counters
};

// A process that measures, and how far it is.
struct ReplayedProcess {
  uint64_t seed = 0;
  int pairs_before = 0;  // that it measured
};

// A recording made ready for replay. Immutable.
class ReplayRecording {
 public:
  explicit ReplayRecording(Recording recording);

  const v1::RecordingHeader& header() const { return header_; }

  // Null: it was not recorded.
  const ReplayedVariant* Find(const v1::Variant& variant) const;
  // The same with its ratio to the start as it was measured directly, where it was: not by way of other variants.
  const ReplayedVariant* FindBesideStart(const v1::Variant& variant) const;

  // Times of a variant that hang together: absolute times drift between recordings of two variants, ratios do not.
  double WarmUs(const ReplayedVariant& variant, v1::TimingMode deciding) const;
  double ColdUs(const ReplayedVariant& variant, v1::TimingMode deciding) const;

  // So many pairs of candidate and parent, as the process would have measured them: the ratio is that of their recorded
  // ratios to the start, the noise of pairs is drawn from what was recorded of both, and all pairs of a process are off
  // by an effect of its own, as much as processes on the GPU differ.
  Timing Pairs(const ReplayedVariant& candidate, const ReplayedVariant& parent, v1::TimingMode deciding, int pairs,
               const ReplayedProcess& process) const;

 private:
  v1::RecordingHeader header_;
  std::vector<ReplayedVariant> variants_;
  std::unordered_map<std::string, const ReplayedVariant*> by_text_;
  std::unordered_map<std::string, ReplayedVariant> beside_start_;
  const ReplayedVariant* start_ = nullptr;
};

// What stands where a GPU's name would: "replay of an NVIDIA H200, recorded on 2026-11-15".
std::string ReplayLabel(const v1::RecordingHeader& header);
// "an NVIDIA H200", "a GeForce RTX 3060".
std::string WithArticle(const std::string& name);

}  // namespace pawl
