#include "worker/record/campaign_recording.h"

#include <map>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/space.h"
#include "worker/build/built_variant.h"

namespace pawl {
namespace {

constexpr size_t kHashDigits = 16;  // of a cubin, as other recordings have them

constexpr std::pair<v1::Stage, const char*> kRecordedStages[] = {{v1::STAGE_BUILD, "build"},
                                                                 {v1::STAGE_VALIDATE, "validate"},
                                                                 {v1::STAGE_MEASURE, "measure"},
                                                                 {v1::STAGE_PROFILE, "profile"}};

v1::Variant VariantOf(const v1::Iteration& iteration) {
  v1::Variant variant;
  *variant.mutable_values() = iteration.variant();
  return variant;
}

absl::Status CheckCampaign(const MeasuredCampaign& measured, const v1::Bundle& bundle) {
  const v1::Campaign& campaign = measured.campaign;
  if (measured.bundle.name() != bundle.name()) {
    return absl::FailedPreconditionError(absl::StrCat(campaign.name(), " is of ", measured.bundle.name(), ", not of ",
                                                      bundle.name(), ": name the bundle that it optimised"));
  }
  if (BundleHash(measured.bundle) != BundleHash(bundle)) {
    return absl::FailedPreconditionError(absl::StrCat(
        campaign.name(), " is of another state of the bundle (", measured.bundle.name(), ", ",
        BundleHash(measured.bundle).substr(0, 12), ") than ", bundle.name(), " is now (",
        BundleHash(bundle).substr(0, 12), "): name the bundle as it was then, or run a campaign of what it is now"));
  }
  if (measured.iterations.empty() || measured.iterations[0].has_parent() ||
      measured.iterations[0].verdict() != v1::KEPT) {
    return absl::FailedPreconditionError(
        absl::StrCat(campaign.name(),
                     " has no times of its start variant, which all others are compared with: run it on a GPU first"));
  }
  if (campaign.replay()) {
    return absl::FailedPreconditionError(
        absl::StrCat(campaign.name(), " ran on ", campaign.device(),
                     ": its times come from a recording. Name a campaign that ran on a GPU"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::RecordingHeader> HeaderOf(const MeasuredCampaign& measured, const v1::Bundle& bundle,
                                             const std::string& size) {
  const v1::Iteration& start = measured.iterations[0];
  v1::RecordingHeader header;
  header.set_bundle(bundle.name());
  header.set_bundle_hash(BundleHash(bundle));
  header.set_size(size);
  header.set_date(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::FromUnixSeconds(start.create_time().seconds()),
                                   absl::UTCTimeZone()));
  *header.mutable_gpu() = start.gpu();
  *header.mutable_toolchain() = start.toolchain();
  header.set_architecture(ArchitectureOf(start.gpu()));
  header.set_space(SpaceSize(bundle));
  absl::StatusOr<int64_t> allowed = CountAllowed(bundle);
  if (!allowed.ok()) return allowed.status();
  header.set_allowed(*allowed);
  *header.mutable_start() = StartVariant(bundle);
  *header.mutable_variables() = bundle.variables();
  *header.mutable_baseline() = start.baselines();
  header.set_copy_gb_s(measured.copy_gb_s);
  header.set_of_campaigns(true);
  return header;
}

// The size of an iteration's profile and of its times that do not name theirs: the goal's, or that of its leg's goal.
const std::string& MainSize(const v1::Campaign& campaign, const v1::Iteration& iteration) {
  const bool of_leg = iteration.leg() < campaign.legs_size();
  return (of_leg ? campaign.legs(iteration.leg()).goal() : campaign.spec().goal()).size();
}

// Of the first process, at one size. A goal of one size does not name it.
google::protobuf::RepeatedPtrField<v1::PairSample> PairsAt(const v1::Iteration& iteration, const std::string& size,
                                                           const std::string& main_size) {
  google::protobuf::RepeatedPtrField<v1::PairSample> pairs;
  for (const v1::PairSample& pair : iteration.pairs()) {
    if ((pair.size().empty() ? main_size : pair.size()) != size) continue;
    *pairs.Add() = pair;
    pairs.rbegin()->clear_size();
  }
  return pairs;
}

v1::RecordedVariant RecordOf(const v1::Iteration& iteration, const v1::Bundle& bundle, const std::string& size,
                             const std::string& main_size, double start_cold_us) {
  const bool main = size == main_size;
  v1::RecordedVariant record;
  *record.mutable_variant() = VariantOf(iteration);
  *record.mutable_pairs() = PairsAt(iteration, size, main_size);
  if (main) {
    record.set_warm_us(iteration.warm_us());
    record.set_cold_us(iteration.cold_us());
    record.set_start_cold_us(start_cold_us);
    if (iteration.has_evidence()) *record.mutable_evidence() = iteration.evidence();
  }
  // Of the other sizes only the time that decides is stored.
  const bool cold = bundle.timing() == v1::TIMING_MODE_COLD;
  for (const v1::SizeComparison& at : iteration.sizes()) {
    if (!main && at.size() == size) cold ? record.set_cold_us(at.time_us()) : record.set_warm_us(at.time_us());
  }
  *record.mutable_errors() = iteration.errors();
  for (const v1::StageTime& time : iteration.stages()) {
    for (const auto& [stage, name] : kRecordedStages) {
      if (time.stage() == stage) (*record.mutable_stage_seconds())[name] += time.seconds();
    }
  }
  record.set_cubin_hash(iteration.cubin_hash().substr(0, kHashDigits));
  // Of a confirmed one the interval counts those of all processes; the pairs here are the first's.
  if (iteration.confirming_pairs().empty()) record.set_discarded(iteration.interval().discarded());
  return record;
}

// Why an iteration can't be recorded; empty: it can.
std::string ReasonAgainst(const v1::Iteration& iteration, const v1::GpuInfo& gpu, const std::string& size,
                          const std::string& main_size) {
  // A start that was proposed has no source but the bundle's.
  const bool edited = iteration.has_parent() && iteration.change().has_source();
  if (!iteration.patched_source_hash().empty() || edited) return "with a source edit";
  if (iteration.verdict() == v1::REJECTED || iteration.has_failure()) return "rejected";
  if (iteration.gpu().name() != gpu.name()) return "of another device";
  if (!iteration.has_parent()) return "";
  if (PairsAt(iteration, size, main_size).empty()) return "without times";
  if (iteration.parent_slowed()) return "beside a parent that it slowed down";
  // Perhaps since it failed a check when it was looked at again: its iteration does not say. A step of an expedition
  // that is faster than its parent was kept only if it was then faster than the best.
  const bool kept_once =
      iteration.expedition() ? iteration.over_best().result() == v1::FASTER : iteration.comparison() == v1::FASTER;
  if (iteration.verdict() == v1::REVERTED && kept_once) return "taken back";
  return "";
}

// The last comparison with the start that an iteration's variant has.
void AddTotal(const std::vector<v1::TotalGain>& totals, int iteration, v1::RecordedVariant* record) {
  for (const v1::TotalGain& total : totals) {
    if (total.iteration() != iteration || total.has_failure() || !(total.speedup_over_start() > 0)) continue;
    *record->mutable_beside_start() = total.interval();
    record->clear_beside_baseline();
    if (total.beside_baseline().log_ratios_size() > 0) *record->mutable_beside_baseline() = total.beside_baseline();
  }
}

}  // namespace

absl::StatusOr<Recording> RecordingOf(const MeasuredCampaign& measured, const v1::Bundle& bundle, LeftOut* left_out,
                                      const std::string& asked_size) {
  if (absl::Status status = CheckCampaign(measured, bundle); !status.ok()) return status;
  const v1::Goal& goal = measured.campaign.spec().goal();
  const std::string size = asked_size.empty() ? goal.size() : asked_size;
  absl::StatusOr<v1::RecordingHeader> header = HeaderOf(measured, bundle, size);
  if (!header.ok()) return header.status();
  Recording recording;
  recording.header = *std::move(header);
  const double start_cold_us = size == goal.size() ? measured.iterations[0].cold_us() : 0;
  const std::string start = VariantText(recording.header.start());
  std::map<int, v1::Variant> recorded;  // by the iteration's number
  std::set<std::string> texts;
  for (const v1::Iteration& iteration : measured.iterations) {
    const std::string& main_size = MainSize(measured.campaign, iteration);
    std::string against = ReasonAgainst(iteration, recording.header.gpu(), size, main_size);
    const auto parent = iteration.has_parent() ? recorded.find(iteration.parent()) : recorded.end();
    if (against.empty() && iteration.has_parent() && parent == recorded.end()) {
      against = "measured beside one that is left out";
    }
    if (!against.empty()) {
      (*left_out)[against].push_back(absl::StrCat("iteration ", iteration.number()));
      continue;
    }
    const v1::Variant variant = VariantOf(iteration);
    recorded[iteration.number()] = variant;
    if (!texts.insert(VariantText(variant)).second) continue;  // from another parent before: one way leads to each
    v1::RecordedVariant record = RecordOf(iteration, bundle, size, main_size, start_cold_us);
    if (parent != recorded.end() && VariantText(parent->second) != start) *record.mutable_beside() = parent->second;
    // A comparison with the start over several sizes says nothing of one.
    if (goal.sizes_size() < 2) AddTotal(measured.totals, iteration.number(), &record);
    recording.Put(record);
  }
  recording.header.set_planned(static_cast<int64_t>(recording.variants.size()));
  return recording;
}

absl::StatusOr<int> AddVariants(const Recording& fresh, const std::string& file, Recording* there, LeftOut* left_out) {
  const v1::RecordingHeader &old = there->header, &header = fresh.header;
  if (old.bundle_hash() != header.bundle_hash()) {
    return absl::FailedPreconditionError(absl::StrCat(file, " is of another state of the bundle, or of another (",
                                                      old.bundle(), ", ", old.bundle_hash().substr(0, 12),
                                                      "; the campaign: ", header.bundle(), ", ",
                                                      header.bundle_hash().substr(0, 12), "): name another --output"));
  }
  if (old.size() != header.size() || old.gpu().name() != header.gpu().name()) {
    return absl::FailedPreconditionError(absl::StrCat(file, " was measured at size ", old.size(), " on ",
                                                      old.gpu().name(), ", the campaign at ", header.size(), " on ",
                                                      header.gpu().name(), ": name another --output"));
  }
  std::map<std::string, bool> passed;  // by the variant's text
  for (const v1::RecordedVariant& record : there->variants) {
    passed[VariantText(record.variant())] = !record.has_failure();
  }
  const std::string start = VariantText(header.start());
  int added = 0;
  for (const v1::RecordedVariant& record : fresh.variants) {
    const std::string text = VariantText(record.variant());
    if (passed.contains(text)) continue;
    const std::string beside = record.has_beside() ? VariantText(record.beside()) : start;
    if (const auto found = passed.find(beside); text != start && (found == passed.end() || !found->second)) {
      (*left_out)[absl::StrCat("measured beside one that ", file, " lacks or has as failed")].push_back(text);
      continue;
    }
    there->Put(record);
    passed[text] = true;
    ++added;
  }
  there->header.set_planned(static_cast<int64_t>(there->variants.size()));
  return added;
}

}  // namespace pawl
