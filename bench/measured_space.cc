#include "bench/measured_space.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/read/bundle_reader.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "profiles/keep_rule.h"
#include "profiles/verdict_protocol.h"
#include "worker/replay/replay_recording.h"

namespace pawl {
namespace {

constexpr double kBestUs = 100;  // only ratios count
constexpr std::string_view kRecordingSuffix = ".h200.jsonl.gz";

// As a worker compares; the pairs of all processes go into `result`.
v1::Comparison CompareEntries(const MeasuredSpace::Entry& candidate, const MeasuredSpace::Entry& parent,
                              const v1::ProcessNoise& noise, SeededRandom& random, v1::TrialResult* result) {
  const size_t own = candidate.residuals.size(), all = own + parent.residuals.size();
  const PairSourceStarter start = [&](int process) -> absl::StatusOr<PairSource> {
    return [&, process](int count) -> absl::StatusOr<PairBatch> {
      PairBatch batch;
      for (int i = 0; i < count; ++i) {
        double ratio = candidate.log_speed - parent.log_speed;
        if (all > 0) {
          const size_t drawn = random.Below(all);
          ratio += drawn < own ? candidate.residuals[drawn] : parent.residuals[drawn - own];
        }
        batch.log_ratios.push_back(ratio);
        v1::PairSample* pair = process == 0 ? result->add_pairs() : result->add_confirming_pairs();
        pair->set_log_ratio(ratio);
        pair->set_process(process);
      }
      return batch;
    };
  };
  return CompareByProtocol(start, noise, KeepRule()).value();
}

}  // namespace

void MeasuredSpace::Index() {
  best = -INFINITY;
  for (size_t i = 0; i < entries.size(); ++i) {
    places[PointOf(bundle, entries[i].variant.values())] = i;
    if (entries[i].ok) best = std::max(best, entries[i].log_speed);
  }
}

const MeasuredSpace::Entry* MeasuredSpace::Find(const google::protobuf::Map<std::string, int32_t>& variant) const {
  const auto place = places.find(PointOf(bundle, variant));
  return place == places.end() ? nullptr : &entries[place->second];
}

v1::TrialResult MeasuredSpace::Measure(const Entry& candidate, const Entry* parent, const v1::ProcessNoise& noise,
                                       SeededRandom& random) const {
  v1::TrialResult result;
  result.set_device(device);
  result.mutable_gpu()->set_name(device);
  if (!candidate.ok) {
    result.mutable_failure()->set_stage(v1::STAGE_VALIDATE);
    result.mutable_failure()->set_check(v1::CHECK_FAULT);
    result.mutable_failure()->set_message("it failed when it was recorded");
    return result;
  }
  const auto us = [&](const Entry& entry) { return kBestUs * std::exp(best - entry.log_speed); };
  result.set_warm_us(us(candidate));
  result.set_cold_us(us(candidate));
  result.set_checked_to_keep(true);
  bool faster = parent == nullptr;
  if (parent != nullptr) {
    result.set_parent_warm_us(us(*parent));
    result.set_parent_cold_us(us(*parent));
    faster = CompareEntries(candidate, *parent, noise, random, &result).result() == v1::FASTER;
  }
  *result.mutable_evidence() = faster ? candidate.counted : candidate.uncounted;
  return result;
}

bool MeasuredSpace::Faster(const Entry& candidate, const Entry& than, SeededRandom& random) const {
  v1::TrialResult result;
  return candidate.ok && CompareEntries(candidate, than, NoiseOf(device), random, &result).result() == v1::FASTER;
}

absl::StatusOr<std::vector<std::string>> RecordedBundles(const std::filesystem::path& checkout) {
  const std::filesystem::path folder = checkout / "profiles/recordings";
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(kRecordingSuffix)) continue;
    const std::string name = file.substr(0, file.size() - kRecordingSuffix.size());
    const absl::StatusOr<v1::RecordingHeader> header = ReadRecordingHeader(entry.path());
    if (!header.ok()) return header.status();
    if (header->of_campaigns()) continue;
    std::error_code missing;
    if (std::filesystem::is_directory(checkout / "kernels" / name, missing)) names.insert(name);
  }
  if (error || names.empty()) return absl::NotFoundError(absl::StrCat("there are no recordings in ", folder.string()));
  return std::vector<std::string>(names.begin(), names.end());
}

absl::StatusOr<MeasuredSpace> RecordedSpace(const std::filesystem::path& checkout, const std::string& bundle) {
  MeasuredSpace space;
  BundleReading reading = ReadBundle(checkout / "kernels" / bundle);
  if (!reading.problems.empty()) return absl::InvalidArgumentError(FormatProblem(reading.problems[0]));
  space.bundle = reading.bundle;
  absl::StatusOr<Recording> recording =
      ReadRecording(checkout / "profiles/recordings" / absl::StrCat(bundle, std::string(kRecordingSuffix)));
  if (!recording.ok()) return recording.status();
  if (recording->header.bundle_hash() != BundleHash(space.bundle)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the recording of ", bundle, " is of another version of the bundle: record it again"));
  }
  std::vector<v1::Variant> variants;
  for (const v1::RecordedVariant& variant : recording->variants) variants.push_back(variant.variant());
  const ReplayRecording replay(*std::move(recording));
  space.name = absl::StrCat(bundle, " (H200)");
  space.device = replay.header().gpu().name();
  for (const v1::Variant& variant : variants) {
    const ReplayedVariant& replayed = *replay.Find(variant);
    space.entries.push_back({.variant = variant,
                             .ok = !replayed.record.has_failure(),
                             .log_speed = replayed.log_ratio,
                             .residuals = replayed.residuals,
                             .counted = replayed.record.evidence(),
                             .uncounted = replayed.uncounted});
  }
  space.Index();
  return space;
}

}  // namespace pawl
