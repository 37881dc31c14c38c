#include "worker/runner/unseen_time.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace pawl {
namespace {

constexpr size_t kFewestBlocks = 6;  // whose spread says something
constexpr double kErrors = 5;        // standard errors: one comparison in 5,000 with 12 blocks, in 100,000 with 36
constexpr double kPauseUs = 5, kPauseShare = 0.25;  // beyond the median: what is longer is cut to that
// Beyond noise, and of the longer replay: what sides of other shapes may differ by, and what a graph and a single
// kernel may. A host that waited for long is slower afterwards.
constexpr double kAlikeUs = 1, kAlikeShare = 0.01, kOwnUs = 5, kOwnShare = 0.03;

double Middle(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Estimate {
  double mean = 0, error = INFINITY;
};

Estimate Of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate estimate;
  for (double value : values) estimate.mean += value / n;
  double squares = 0;
  for (double value : values) squares += (value - estimate.mean) * (value - estimate.mean);
  if (values.size() > 1) estimate.error = std::sqrt(squares / (n - 1) / n);
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
  Block block;
  for (size_t i = 0; i < replays_.size(); ++i) {
    std::vector<double> gpu, unseen;
    for (const Replay& replay : replays_[i]) {
      gpu.push_back(replay.gpu_us);
      unseen.push_back(replay.unseen_us);
    }
    const double gpu_us = Middle(gpu), unseen_us = Middle(unseen);
    for (const Replay& replay : replays_[i]) {
      // What is more is the host's, which did something else for a while, where the events are not the shorter for it.
      const double most = unseen_us + std::max(0.0, gpu_us - replay.gpu_us) + kPauseShare * gpu_us + kPauseUs;
      block.unseen_us[i] += std::min(replay.unseen_us, most) / static_cast<double>(replays_[i].size());
    }
    block.gpu_us[i] = gpu_us;
  }
  blocks_.push_back(block);
  BeginBlock();
}

double UnseenTime::over_parent_us() const {
  std::vector<double> values;
  for (const Block& block : blocks_) values.push_back(block.unseen_us[kCandidate] - block.unseen_us[kParent]);
  return Of(values).mean;
}

double UnseenTime::over_own_us() const {
  std::vector<double> values;
  for (const Block& block : blocks_) values.push_back(block.unseen_us[kCandidate] - block.unseen_us[kOwn]);
  return Of(values).mean;
}

double UnseenTime::error_us() const {
  std::vector<double> values;
  for (const Block& block : blocks_) values.push_back(block.unseen_us[kCandidate] - block.unseen_us[kParent]);
  return blocks_.size() > 1 ? Of(values).error : 0;
}

std::string UnseenTime::Judge() const {
  if (blocks_.size() < kFewestBlocks) return "";
  const auto differs = [&](Source a, Source b, double us, double share) {
    std::vector<double> values;
    double replay_us = 0;
    for (const Block& block : blocks_) {
      values.push_back(block.unseen_us[a] - block.unseen_us[b]);
      replay_us += std::max(block.gpu_us[a], block.gpu_us[b]) / static_cast<double>(blocks_.size());
    }
    const Estimate estimate = Of(values);
    return std::abs(estimate.mean) > kErrors * estimate.error + us + share * replay_us ? estimate.mean : 0.0;
  };
  const auto text = [&](const char* whose, double us, const char* than) {
    return absl::StrFormat(
        "by the host's clock a replay of the %s takes %.2f us %s than by the GPU's events, beyond what %s takes: the "
        "events, whose memory a kernel can write to, can't be believed",
        whose, std::abs(us), us > 0 ? "longer" : "less", than);
  };
  if (const double us = differs(kCandidate, kParent, kAlikeUs, kAlikeShare); us != 0) {
    return text("candidate", us, "one of its parent");
  }
  if (const double us = differs(kCandidate, kOwn, kOwnUs, kOwnShare); us != 0) {
    return text("candidate", us, "Pawl's own kernel");
  }
  if (const double us = differs(kParent, kOwn, kOwnUs, kOwnShare); us != 0) {
    return text("parent", us, "Pawl's own kernel");
  }
  return "";
}

}  // namespace pawl
