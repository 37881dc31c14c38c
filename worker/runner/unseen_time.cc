#include "worker/runner/unseen_time.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace pawl {
namespace {

constexpr size_t kFewestBlocks = 6;  // whose spread says something
constexpr double kErrors = 5;        // standard errors
// Beyond noise, and of the longer replay: what sides of other shapes may differ by, and what a graph and a single
// kernel may.
constexpr double kAlikeUs = 1, kAlikeShare = 0.01, kOwnUs = 5, kOwnShare = 0.03;
constexpr double kAlikeLong = 4;  // times as long as another, and the host may notice later than of that

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

struct Estimate {
  double median = 0, error = INFINITY;
};

// Of values with outliers: as many as nearly half of them.
Estimate Of(const std::vector<double>& values) {
  Estimate estimate;
  estimate.median = Quantile(values, 0.5);
  std::vector<double> off;
  for (double value : values) off.push_back(std::abs(value - estimate.median));
  // Of a normal distribution's median: 1.25 standard deviations, which are 1.48 median deviations.
  if (values.size() > 1) {
    estimate.error = 1.25 * 1.48 * Quantile(off, 0.5) / std::sqrt(static_cast<double>(values.size()));
  }
  return estimate;
}

}  // namespace

void UnseenTime::BeginBlock() {
  for (std::vector<Replay>& replays : replays_) replays.clear();
}

void UnseenTime::Add(Source source, double gpu_us, double host_us) {
  replays_[source].push_back({gpu_us, host_us - gpu_us});
}

void UnseenTime::EndBlock() {
  if (std::any_of(replays_.begin(), replays_.end(), [](const auto& replays) { return replays.empty(); })) return;
  std::array<Block, 3>& block = blocks_.emplace_back();
  for (size_t i = 0; i < replays_.size(); ++i) {
    std::vector<double> unseen;
    for (const Replay& replay : replays_[i]) {
      unseen.push_back(replay.unseen_us);
      block[i].gpu_us += replay.gpu_us / static_cast<double>(replays_[i].size());
    }
    block[i].early_us = Quantile(unseen, 0.25);
    block[i].shortest_us =
        std::min_element(replays_[i].begin(), replays_[i].end(), [](const Replay& a, const Replay& b) {
          return a.gpu_us < b.gpu_us;
        })->unseen_us;
  }
  BeginBlock();
}

std::vector<double> UnseenTime::Differences(double Block::*unseen, Source a, Source b) const {
  std::vector<double> differences;
  for (const std::array<Block, 3>& block : blocks_) differences.push_back(block[a].*unseen - block[b].*unseen);
  return differences;
}

double UnseenTime::MeanGpuUs(Source source) const {
  double mean = 0;
  for (const std::array<Block, 3>& block : blocks_) mean += block[source].gpu_us / static_cast<double>(blocks_.size());
  return mean;
}

double UnseenTime::over_parent_us() const { return Of(Differences(&Block::early_us, kCandidate, kParent)).median; }
double UnseenTime::over_own_us() const { return Of(Differences(&Block::early_us, kCandidate, kOwn)).median; }
double UnseenTime::error_us() const {
  return blocks_.size() > 1 ? Of(Differences(&Block::early_us, kCandidate, kParent)).error : 0;
}

std::string UnseenTime::Judge() const {
  if (blocks_.size() < kFewestBlocks) return "";
  const double candidate_us = MeanGpuUs(kCandidate), parent_us = MeanGpuUs(kParent), own_us = MeanGpuUs(kOwn);
  // How much more the candidate hides than may be; 0: nothing that can't be chance.
  const auto hidden = [&](double Block::*unseen, Source than, double allowed) {
    const Estimate estimate = Of(Differences(unseen, kCandidate, than));
    return estimate.median > kErrors * estimate.error + allowed ? estimate.median : 0;
  };
  const auto text = [](double us, const char* than) {
    return absl::StrFormat(
        "by the host's clock a replay of the candidate takes %.2f us longer than by the GPU's events, beyond what %s "
        "takes: the events, whose memory a kernel can write to, can't be believed",
        us, than);
  };
  // Also where it is slower: at one of several sizes it may hide by how much.
  if (candidate_us <= kAlikeLong * parent_us) {
    const double allowed = kAlikeUs + kAlikeShare * std::max(candidate_us, parent_us);
    for (const auto unseen : {&Block::early_us, &Block::shortest_us}) {
      if (const double us = hidden(unseen, kParent, allowed); us != 0) return text(us, "one of its parent");
    }
  }
  if (candidate_us <= kAlikeLong * own_us) {
    const double us = hidden(&Block::early_us, kOwn, kOwnUs + kOwnShare * std::max(candidate_us, own_us));
    if (us != 0) return text(us, "Pawl's own kernel");
  }
  return "";
}

}  // namespace pawl
