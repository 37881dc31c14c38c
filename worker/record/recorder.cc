#include "worker/record/recorder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "base/sync/steady_time.h"
#include "kernels/plan.h"
#include "kernels/space.h"
#include "profiles/gpus.h"
#include "worker/check/start_variant.h"
#include "worker/host/toolkit.h"
#include "worker/record/build_ahead.h"
#include "worker/replay/recorded_speedups.h"
#include "worker/trial/trial_pipeline.h"
#include "worker/trial/trial_steps.h"
#include "worker/validate/output_check.h"

namespace pawl {
namespace {

constexpr size_t kProfiledTogether = 32;  // each run of ncu takes about four seconds to start

// The mean over the start variant; nothing for a variant that failed.
std::optional<double> LogSpeedup(const v1::RecordedVariant& record) {
  if (record.has_failure() || record.pairs().empty()) return std::nullopt;
  double sum = 0;
  for (const v1::PairSample& pair : record.pairs()) sum += pair.log_ratio();
  return sum / record.pairs_size();
}

// Over the start variant, weighted over the sizes that were recorded.
std::optional<double> LogSpeedupOver(const std::vector<SizeWeight>& sizes, const MeasuredVariant& measured) {
  if (measured.result.has_failure() || !measured.timed) return std::nullopt;
  double speedup = 0;
  for (const SizeWeight& size : sizes) {
    double sum = 0;
    int pairs = 0;
    for (const v1::PairSample& pair : measured.result.pairs()) {
      if (!pair.size().empty() && pair.size() != size.size) continue;
      sum += pair.log_ratio();
      ++pairs;
    }
    if (pairs == 0) return std::nullopt;
    speedup += size.weight * sum / pairs;
  }
  return speedup;
}

// At one size. What is not measured once for each, errors and profile, is in the recording of the main size only.
v1::RecordedVariant RecordOf(const BuiltVariant& built, const MeasuredVariant& measured, const std::string& size,
                             bool main) {
  const v1::TrialResult& result = measured.result;
  v1::RecordedVariant record;
  *record.mutable_variant() = built.variant;
  if (result.has_failure()) *record.mutable_failure() = result.failure();
  if (main) *record.mutable_errors() = result.errors();
  if (!built.failure && main) record.set_cubin_hash(result.cubin_hash().substr(0, 16));
  if (!built.failure && !main) record.set_cubin_hash(built.Find(size)->module.substr(0, 16));
  record.set_discarded(result.discarded());
  (*record.mutable_stage_seconds())["build"] = built.seconds;
  for (const v1::StageTime& time : result.stages()) {
    if (time.stage() == v1::STAGE_VALIDATE) (*record.mutable_stage_seconds())["validate"] += time.seconds();
    if (time.stage() == v1::STAGE_MEASURE) (*record.mutable_stage_seconds())["measure"] += time.seconds();
  }
  if (!measured.timed) return record;
  for (const v1::PairSample& pair : result.pairs()) {
    if (!pair.size().empty() && pair.size() != size) continue;
    *record.add_pairs() = pair;
    record.mutable_pairs()->rbegin()->clear_size();
  }
  const SideTimes& times = measured.times.at(size);
  record.set_warm_us(times.warm_us);
  record.set_cold_us(times.cold_us);
  record.set_start_cold_us(times.parent_cold_us);
  return record;
}

}  // namespace

// A variant that went through the GPU and may still lack its profile.
struct Recorder::Measured {
  BuiltVariant built;
  std::vector<v1::ResourceUse> resources;
  v1::RecordedVariant record;
  std::vector<v1::RecordedVariant> others;  // at the other sizes, in the order of others_
  std::optional<double> log_speedup;        // over the start; nothing: it failed
};

Recorder::Recorder(GpuDevice& device, const v1::Bundle& bundle, RecordOptions options)
    : device_(device),
      bundle_(bundle),
      shared_bundle_(std::make_shared<const v1::Bundle>(bundle)),
      options_(std::move(options)),
      sizes_(GoalSizes(bundle, bundle.goal())) {}

absl::StatusOr<v1::RecordingHeader> Recorder::MakeHeader(bool goes_on, const Say& say) {
  v1::RecordingHeader header;
  header.set_bundle(bundle_.name());
  header.set_bundle_hash(BundleHash(bundle_));
  header.set_size(bundle_.goal().size());
  *header.mutable_gpu() = device_.gpu();
  header.set_planned(selection_.size());
  if (goes_on) return header;  // the journal has the rest
  header.set_date(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()));
  *header.mutable_toolchain() = device_.toolchain();
  header.set_architecture(ArchitectureOf(device_.gpu()));
  header.set_space(SpaceSize(bundle_));
  absl::StatusOr<int64_t> allowed = CountAllowed(bundle_);
  if (!allowed.ok()) return allowed.status();
  header.set_allowed(*allowed);
  *header.mutable_start() = StartVariant(bundle_);
  *header.mutable_variables() = bundle_.variables();
  header.set_host(HostText());

  header.set_copy_gb_s(CopyBandwidth(device_).value_or(0));

  if (!HasBaseline(bundle_)) return header;
  say("timing the baseline");
  absl::StatusOr<std::vector<v1::BaselineTime>> times = device_.TimeBaseline(bundle_, options_.folder);
  if (!times.ok()) {
    say(absl::StrCat("no baseline: ", times.status().message()));
    return header;
  }
  for (const v1::BaselineTime& time : *times) {
    *header.add_baseline() = time;
    say(absl::StrFormat("baseline %s: %.2f us by graph, %.2f us by event loop (%s)", time.size(), time.graph_us(),
                        time.event_us(), time.what()));
  }
  return header;
}

absl::Status StartFails(const v1::Bundle& bundle, const v1::Failure& failure) {
  return absl::FailedPreconditionError(absl::StrCat("the start variant of ", bundle.name(), " fails (",
                                                    v1::Check_Name(failure.check()), " at size ", failure.size(),
                                                    "): ", failure.message()));
}

// Nothing is measured against a start variant that is wrong, nor under a tolerance that accepts anything.
absl::Status Recorder::PrepareStart(const Say& say) {
  absl::StatusOr<StartVariantRun> run = RunStartVariant(device_, bundle_);
  if (!run.ok()) return run.status();
  if (run->failure) return StartFails(bundle_, *run->failure);
  for (const std::string& warning : run->warnings) say(warning);
  start_ = std::move(run->built);
  return absl::OkStatus();
}

absl::StatusOr<Recorder::Measured> Recorder::Measure(BuiltVariant built) {
  TrialBuild build;
  build.bundle = shared_bundle_;
  build.own_hash = BundleHash(bundle_);
  build.size = bundle_.goal().size();
  build.sizes = sizes_;
  build.failure = built.failure;
  if (!built.failure) build.small = built.sizes.size() - bundle_.sizes_size() + 1;
  build.candidate = std::move(built);
  build.parent = AtGoal(start_);
  for (const SizeWeight& size : sizes_) build.parents.emplace(size.size, *start_.Find(size.size));
  absl::StatusOr<MeasuredVariant> measured = MeasureBesideStart(device_, build);
  if (!measured.ok()) return measured.status();
  Measured made;
  made.record = RecordOf(build.candidate, *measured, build.size, /*main=*/true);
  for (const SizeWeight& size : sizes_) {
    if (size.size == build.size) continue;
    made.others.push_back(RecordOf(build.candidate, *measured, size.size, /*main=*/false));
  }
  made.log_speedup = LogSpeedupOver(sizes_, *measured);
  made.built = std::move(build.candidate);
  made.resources = std::move(measured->resources);
  return made;
}

// A variant that an earlier run measured and did not get to profile.
absl::StatusOr<Recorder::Measured> Recorder::LoadAgain(BuiltVariant built, const v1::RecordedVariant& before) {
  Measured measured;
  measured.record = before;
  measured.built = std::move(built);
  if (measured.built.failure) return absl::InternalError("a variant that was measured before does not build any more");
  const BuiltSize& at = AtGoal(measured.built);
  absl::StatusOr<v1::RunnerReply> loaded = device_.runner().Load(at.module, *at.cubin, at.plan.launches());
  if (!loaded.ok()) return loaded.status();
  measured.resources.assign(loaded->load().resources().begin(), loaded->load().resources().end());
  return measured;
}

absl::Status Recorder::ProfileAll(std::vector<Measured>* measured, RecordingJournal* journal, const Report& report,
                                  const Say& say, RecordProgress* progress) {
  const SteadyTime start = SteadyNow();
  progress->to_profile = measured->size();
  for (size_t first = 0; first < measured->size(); first += kProfiledTogether) {
    const size_t last = std::min(measured->size(), first + kProfiledTogether);
    std::vector<ProfileItem> items;
    for (size_t i = first; i < last; ++i) {
      items.push_back({&AtGoal((*measured)[i].built), (*measured)[i].resources, bundle_.work_on_tensor_cores()});
    }
    absl::StatusOr<Profiling> profiling = device_.Profile(items);
    if (!profiling.ok()) return profiling.status();
    if (first == 0 && !profiling->missing.empty()) {
      say(absl::StrCat("this ncu lacks ", absl::StrJoin(profiling->missing, ", "),
                       ": the evidence has no values for them"));
    }
    if (first == 0 && profiling->evidence[0].partial()) {
      say(absl::StrCat("no counters, times only: ", profiling->evidence[0].partial_reason()));
    }
    for (size_t i = first; i < last; ++i) {
      v1::RecordedVariant& record = (*measured)[i].record;
      *record.mutable_evidence() = std::move(profiling->evidence[i - first]);
      (*record.mutable_stage_seconds())["profile"] = profiling->seconds / items.size();
      if (absl::Status status = journal->Append(record); !status.ok()) return status;
    }
    progress->profiled = last;
    progress->profile_seconds = absl::ToDoubleSeconds(SteadyNow() - start);
    report(*progress);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<v1::Variant>> Recorder::NextRound() {
  if (walk_) return walk_->NextRound();
  std::vector<v1::Variant> all;
  all.swap(selection_);
  return all;
}

absl::Status Recorder::Select() {
  if (options_.add.empty()) {
    absl::StatusOr<std::vector<v1::Variant>> selection = ConnectedSample(bundle_, options_.sample);
    if (!selection.ok()) return selection.status();
    selection_ = *std::move(selection);
    if (options_.sample > 0) walk_.emplace(bundle_, options_.sample);
    return absl::OkStatus();
  }
  absl::StatusOr<Recording> there = ReadRecording(options_.output);
  if (!there.ok()) return there.status();
  if (there->header.bundle_hash() != BundleHash(bundle_)) {
    return absl::FailedPreconditionError(absl::StrCat(options_.output.string(), " is of another state of ",
                                                      bundle_.name(), "; record it again instead of adding to it"));
  }
  if (there->header.size() != bundle_.goal().size() || there->header.gpu().name() != device_.gpu().name() ||
      there->header.gpu().driver_version() != device_.gpu().driver_version()) {
    return absl::FailedPreconditionError(absl::StrCat(
        options_.output.string(), " was measured at size ", there->header.size(), " on ", there->header.gpu().name(),
        " with driver ", there->header.gpu().driver_version(), ", this would be ", bundle_.goal().size(), " on ",
        device_.gpu().name(), " with ", device_.gpu().driver_version(), ": add nothing else to it"));
  }
  std::set<std::string> seen;
  auto select = [&](const v1::Variant& variant) {
    if (seen.insert(VariantText(variant)).second) selection_.push_back(variant);
  };
  for (const v1::RecordedVariant& record : there->variants) select(record.variant());
  for (const v1::Variant& variant : options_.add) {
    absl::StatusOr<bool> allowed = IsAllowed(bundle_, variant);
    if (!allowed.ok()) return allowed.status();
    if (*allowed) select(variant);
  }
  return absl::OkStatus();
}

absl::StatusOr<RecordingJournal> Recorder::OpenJournal(const std::filesystem::path& part, const Say& say) {
  if (options_.add.empty() || RecordingJournal::Begun(part)) {
    absl::StatusOr<v1::RecordingHeader> header = MakeHeader(RecordingJournal::Begun(part), say);
    if (!header.ok()) return header.status();
    return RecordingJournal::Open(part, *header);
  }
  absl::StatusOr<Recording> there = ReadRecording(options_.output);
  if (!there.ok()) return there.status();
  there->header.set_planned(selection_.size());
  absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(part, there->header);
  for (const v1::RecordedVariant& record : there->variants) {
    if (!journal.ok()) break;
    if (absl::Status status = journal->Append(record); !status.ok()) return status;
  }
  return journal;
}

// One for each size beside the goal's own, whose journal says how far the recording is.
absl::StatusOr<std::vector<RecordingJournal>> Recorder::OpenOthers(const RecordingJournal& main) {
  std::vector<RecordingJournal> others;
  for (const SizeWeight& size : sizes_) {
    if (size.size == bundle_.goal().size()) continue;
    const std::filesystem::path part = RecordingFileAt(options_.output, size.size).string() + ".part";
    if (!main.recording().variants.empty() && !RecordingJournal::Begun(part)) {
      return absl::FailedPreconditionError(absl::StrCat(part.string(), " is missing beside ", options_.output.string(),
                                                        ".part: remove that, too, and start over"));
    }
    v1::RecordingHeader header = main.recording().header;
    header.set_size(size.size);
    absl::StatusOr<RecordingJournal> journal = RecordingJournal::Open(part, header);
    if (!journal.ok()) return journal.status();
    others.push_back(*std::move(journal));
  }
  return others;
}

absl::StatusOr<Recording> Recorder::Run(const Report& report, const Say& say) {
  if (absl::Status status = Select(); !status.ok()) return status;
  if (FindGpu(device_.gpu().name()) == nullptr) {
    say(absl::StrCat(device_.gpu().name(), " is not in profiles/gpus: times are not held against a roofline floor"));
  }
  if (bundle_.work_flops().empty() && bundle_.work_bytes().empty()) {
    say("the bundle has no [work]: times are not held against a roofline floor");
  }
  if (absl::Status status = PrepareStart(say); !status.ok()) return status;
  const std::filesystem::path part = options_.output.string() + ".part";
  absl::StatusOr<RecordingJournal> journal = OpenJournal(part, say);
  if (!journal.ok()) return journal.status();
  absl::StatusOr<std::vector<RecordingJournal>> others = OpenOthers(*journal);
  if (!others.ok()) return others.status();

  RecordProgress progress;
  progress.planned = selection_.size();
  auto count = [&](const v1::RecordedVariant& record, std::optional<double> log_speedup) {
    ++progress.done;
    progress.failed += record.has_failure();
    if (!log_speedup || std::exp(*log_speedup) <= progress.best_speedup) return;
    progress.best_speedup = std::exp(*log_speedup);
    progress.best = VariantText(record.variant());
  };
  std::map<std::string, v1::RecordedVariant> before;
  const Recording& begun = journal->recording();
  const RecordedSpeedups speedups = SpeedupsOf(begun.header, begun.variants);
  auto log_speedup_before = [&](const v1::RecordedVariant& record) -> std::optional<double> {
    const auto found = speedups.log_speedup.find(VariantText(record.variant()));
    if (!LogSpeedup(record) || found == speedups.log_speedup.end()) return std::nullopt;
    return found->second;
  };
  for (const v1::RecordedVariant& record : begun.variants) {
    before[VariantText(record.variant())] = record;
    count(record, log_speedup_before(record));
  }
  if (!before.empty()) say(absl::StrCat("continuing: ", before.size(), " variants are in ", part.string()));
  // What an earlier run got through is neither built nor measured again.
  auto left = [&](const v1::Variant& variant) {
    const auto found = before.find(VariantText(variant));
    return found == before.end() || (options_.profile && !found->second.has_failure() && !found->second.has_evidence());
  };

  const SteadyTime start = SteadyNow();
  BuildAhead builds({}, [&](const v1::Variant& variant) {
    return BuildVariant(device_.builder(), bundle_, variant, AllSizes(bundle_).all, device_.gpu(), nullptr, &bundle_);
  });
  auto next_round = [&]() -> absl::StatusOr<std::vector<v1::Variant>> {
    absl::StatusOr<std::vector<v1::Variant>> round = NextRound();
    if (!round.ok()) return round.status();
    std::vector<v1::Variant> to_build;
    std::copy_if(round->begin(), round->end(), std::back_inserter(to_build), left);
    builds.Add(to_build);
    return round;
  };
  std::vector<Measured> to_profile;
  auto measure = [&](const v1::Variant& variant) -> absl::Status {
    absl::StatusOr<BuiltVariant> built = builds.Next();
    if (!built.ok()) return built.status();
    const auto found = before.find(VariantText(variant));
    const bool fresh = found == before.end();
    absl::StatusOr<Measured> measured =
        fresh ? Measure(*std::move(built)) : LoadAgain(*std::move(built), found->second);
    if (!measured.ok()) return measured.status();
    const v1::RecordedVariant& record = measured->record;
    // Its outputs may be off in one of many timed calls.
    if (record.has_failure() && record.failure().check() != v1::CHECK_UNSTEADY &&
        VariantText(variant) == VariantText(StartVariant(bundle_))) {
      return StartFails(bundle_, record.failure());
    }
    if (fresh) {
      for (size_t i = 0; i < others->size(); ++i) {
        if (absl::Status status = (*others)[i].Append(measured->others[i]); !status.ok()) return status;
      }
      if (absl::Status status = journal->Append(record); !status.ok()) return status;
      if (progress.fresh == 0 && !record.pairs().empty() && record.pairs(0).before().sm_clock_mhz() == 0) {
        say("NVML is not available: pairs measured while the GPU throttled can't be told apart");
      }
      count(record, measured->log_speedup);
      if (record.has_failure()) {
        say(absl::StrCat(VariantText(record.variant()), ": ", v1::Check_Name(record.failure().check()), " at ",
                         record.failure().size(), ": ", record.failure().message()));
      }
      ++progress.fresh;
      progress.seconds = absl::ToDoubleSeconds(SteadyNow() - start);
      report(progress);
    }
    if (walk_) walk_->Learn(variant, fresh ? measured->log_speedup : LogSpeedup(record));
    if (options_.profile && !record.has_failure()) to_profile.push_back(*std::move(measured));
    return absl::OkStatus();
  };
  absl::StatusOr<std::vector<v1::Variant>> round = next_round();
  while (round.ok() && !round->empty()) {
    absl::StatusOr<std::vector<v1::Variant>> next = next_round();  // is built while this one is measured
    if (!next.ok()) return next.status();
    for (const v1::Variant& variant : *round) {
      if (left(variant)) {
        if (absl::Status status = measure(variant); !status.ok()) return status;
      } else if (walk_) {
        walk_->Learn(variant, log_speedup_before(before.at(VariantText(variant))));
      }
    }
    round = next->empty() ? next_round() : std::move(next);  // none: this one may have shown where to go on
  }
  if (!round.ok()) return round.status();
  if (absl::Status status = ProfileAll(&to_profile, &*journal, report, say, &progress); !status.ok()) return status;
  std::error_code ignored;
  for (const RecordingJournal& other : *others) {
    const std::filesystem::path file = RecordingFileAt(options_.output, other.recording().header.size());
    if (absl::Status status = WriteRecording(file, other.recording()); !status.ok()) return status;
    std::filesystem::remove(file.string() + ".part", ignored);
  }
  if (absl::Status status = WriteRecording(options_.output, journal->recording()); !status.ok()) return status;
  std::filesystem::remove(part, ignored);
  return journal->recording();
}

}  // namespace pawl
